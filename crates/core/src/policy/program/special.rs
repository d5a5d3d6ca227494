//! Programs that no row can describe: those that start others, and those with a language of their own.

use super::script::{is_plain_awk, is_plain_sed};
use super::setting::variable;
use super::{CommandEffect, CommandFacts, DEPTH_MAX, by_row, host, row_effects, table};
use crate::policy::{DangerReason, HiddenReason, RemoteEffect};

/// Shell built-ins and programs that run text as code.
const BUILTINS: [&str; 8] = ["eval", "source", ".", "trap", "alias", "coproc", "parallel", "watch"];
const EDITORS: [&str; 9] = ["vim", "vi", "nvim", "ex", "view", "ed", "emacs", "nano", "vimdiff"];
/// Words that make a database client start a program.
const SQL: [&str; 14] = [
    ".shell",
    ".system",
    ".output",
    ".once",
    ".read",
    ".load",
    ".import",
    ".save",
    ".backup",
    ".open",
    "writefile",
    "load_extension",
    "edit(",
    ".excel",
];

/// Finds the effects of such a program; `None` for any other.
pub(super) fn special_effects(program: &str, words: &[&str]) -> Option<CommandFacts> {
    let code = |why: HiddenReason| CommandFacts { is_whole: false, effects: vec![CommandEffect::Code(why)], head: 0 };
    let facts = match program {
        // They treat every word as text.
        "echo" | "printf" | "true" | "false" | "test" | "[" | "expr" => {
            CommandFacts { is_whole: true, ..CommandFacts::default() }
        }
        "find" | "gfind" => find(words),
        "xargs" => xargs(words),
        "env" => env(words),
        "exec" | "busybox" | "toybox" => CommandFacts { is_whole: true, effects: run(words), head: 0 },
        "sed" | "gsed" => sed(words),
        "awk" | "gawk" | "mawk" | "nawk" => awk(words),
        "dd" => dd(words),
        "jq" | "yq" if words.iter().any(|word| reads_more(word)) => code(HiddenReason::Filter(program.to_owned())),
        "tar" => return tar(words),
        "ssh" | "mosh" => ssh(words),
        "scp" | "rsync" | "sftp" => return remote(program, words),
        "curl" | "wget" => return fetch(program, words),
        "sqlite3"
            if words.iter().any(|word| {
                SQL.iter().any(|odd| word.contains(odd)) || word.starts_with("-cmd") || word.starts_with("-init")
            }) =>
        {
            code(HiddenReason::Instructed(program.to_owned()))
        }
        "psql" | "mysql"
            if words.iter().any(|word| {
                word.contains("\\!") || word.contains("\\o") || word.to_lowercase().contains("program")
            }) =>
        {
            code(HiddenReason::Instructed(program.to_owned()))
        }
        name if BUILTINS.contains(&name) => code(HiddenReason::Script(name.to_owned())),
        name if EDITORS.contains(&name) => code(HiddenReason::Anything(name.to_owned())),
        "zip" if words.iter().any(|word| word.starts_with('-') && word.contains("TT")) => {
            code(HiddenReason::OptionRuns("zip -TT".to_owned()))
        }
        _ => return None,
    };
    Some(facts)
}

fn run(words: &[&str]) -> Vec<CommandEffect> {
    if words.is_empty() {
        Vec::new()
    } else {
        vec![CommandEffect::Run(words.iter().map(|word| (*word).to_owned()).collect())]
    }
}

/// Whether a filter, or a flag of `jq` and `yq`, names further files or variables.
fn reads_more(word: &str) -> bool {
    const MORE: [&str; 10] = [
        "import",
        "include",
        "load",
        "env",
        "ENV",
        "--rawfile",
        "--slurpfile",
        "--argfile",
        "--from-file",
        "--library-path",
    ];
    MORE.iter().any(|more| word.contains(more))
}

/// Starting points, then tests and actions.
fn find(words: &[&str]) -> CommandFacts {
    const TESTS: &str = "-name= -iname= -path= -ipath= -regex= -iregex= -type= -size= -mtime= -mmin= -atime= -amin= -ctime= -cmin= -newer< -anewer< -cnewer< -used= -uid= -gid= -nouser -nogroup -xtype= -lname= -ilname= -fstype= -warn -nowarn -ignore_readdir_race -maxdepth= -mindepth= -perm= -user= -group= -empty -not -and -a -or -o -print -print0 -printf= -ls -prune -quit -depth -d -mount -xdev -follow -L -H -P -true -false -readable -writable -executable -links= -inum= -samefile< -wholename= -noleaf -regextype= -daystart -E";
    let is_start = |word: &&&str| !word.starts_with('-') && !matches!(**word, "(" | ")" | "!" | ",");
    let flags = words.iter().take_while(|word| matches!(**word, "-L" | "-H" | "-P" | "-E")).count();
    let mut starts: Vec<&str> = words.iter().skip(flags).take_while(is_start).copied().collect();
    let mut rest = words.iter().skip(flags + starts.len()).copied();
    if starts.is_empty() {
        starts.push(".");
    }
    let mut facts = CommandFacts {
        is_whole: true,
        effects: starts.iter().map(|start| CommandEffect::Read((*start).to_owned())).collect(),
        head: 0,
    };
    while let Some(word) = rest.next() {
        match word {
            "-delete" => facts.effects.extend(starts.iter().map(|start| CommandEffect::Delete((*start).to_owned()))),
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                facts.effects.push(CommandEffect::Write(rest.next().unwrap_or_default().to_owned()));
                if word == "-fprintf" {
                    rest.next();
                }
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let inner: Vec<&str> = rest.by_ref().take_while(|word| !matches!(*word, ";" | "+")).collect();
                // A found path lies beneath its starting point.
                for start in &starts {
                    let named = inner.iter().map(|word| word.replace("{}", start)).collect();
                    facts.effects.push(CommandEffect::Run(named));
                }
            }
            "(" | ")" | "!" | "," => {}
            // `-newermt DATE` and its kin compare times.
            word if word.starts_with("-newer") && word != "-newer" => drop(rest.next()),
            word => match TESTS.split(' ').find(|test| test.trim_end_matches(['=', '<']) == word) {
                Some(test) if test.ends_with('<') => {
                    facts.effects.push(CommandEffect::Read(rest.next().unwrap_or_default().to_owned()))
                }
                Some(test) if test.ends_with('=') => drop(rest.next()),
                Some(_) => {}
                None => facts.is_whole = false,
            },
        }
    }
    facts
}

/// Input through the pipe becomes arguments that cannot be judged.
fn xargs(words: &[&str]) -> CommandFacts {
    const VALUED: [&str; 12] =
        ["-I", "-n", "-P", "-L", "-d", "-s", "-E", "-a", "--max-args", "--max-procs", "--delimiter", "--arg-file"];
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        at += if VALUED.contains(word) { 2 } else { 1 };
    }
    let inner = words.get(at..).unwrap_or_default();
    let mut effects = run(inner);
    let mut innermost = inner;
    for _ in 0..DEPTH_MAX {
        let is_wrapper = innermost.first().is_some_and(|program| {
            matches!(
                *program,
                "env" | "nice" | "nohup" | "timeout" | "command" | "xargs" | "time" | "stdbuf" | "setsid" | "busybox"
            )
        });
        if !is_wrapper {
            break;
        }
        innermost = innermost.get(1..).unwrap_or_default();
    }
    if let Some(program) = innermost.iter().find(|word| table::is_risky(word)) {
        effects.push(CommandEffect::Danger(DangerReason::PipedArguments((*program).to_owned())));
    }
    CommandFacts { is_whole: false, effects, head: 0 }
}

fn env(words: &[&str]) -> CommandFacts {
    let mut facts = CommandFacts { is_whole: true, ..CommandFacts::default() };
    let mut rest = words.iter().copied().peekable();
    while let Some(word) = rest.next_if(|word| word.starts_with('-') || word.contains('=')) {
        match word {
            "-i" | "-" | "--ignore-environment" | "-0" | "--null" | "-v" => {}
            "-u" | "--unset" => drop(rest.next()),
            "-C" | "--chdir" => facts.effects.push(CommandEffect::Read(rest.next().unwrap_or_default().to_owned())),
            word if word.starts_with('-') => {
                facts.effects.push(CommandEffect::Code(HiddenReason::EnvSplit(word.to_owned())));
            }
            word => {
                let (name, value) = word.split_once('=').unwrap_or((word, ""));
                facts.effects.extend(variable(name, value));
            }
        }
    }
    let inner: Vec<&str> = rest.collect();
    // Without a command it prints variables, which may hold keys.
    facts.is_whole &= !inner.is_empty();
    facts.effects.extend(run(&inner));
    facts
}

fn sed(words: &[&str]) -> CommandFacts {
    const PLAIN: [&str; 9] = [
        "--quiet",
        "--silent",
        "--regexp-extended",
        "--posix",
        "--separate",
        "--unbuffered",
        "--null-data",
        "--debug",
        "--sandbox",
    ];
    let mut facts = CommandFacts { is_whole: true, ..CommandFacts::default() };
    let (mut scripts, mut rest): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    // The suffix of the backup file; empty if none is kept.
    let mut in_place: Option<&str> = None;
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "--" => rest.extend(words.by_ref()),
            "--expression" => scripts.extend(words.next()),
            word if PLAIN.contains(&word) => {}
            word if word.starts_with("--expression=") => scripts.extend(word.split_once('=').map(|(_, script)| script)),
            word if word.starts_with("--in-place") => {
                in_place = Some(word.split_once('=').map_or("", |(_, suffix)| suffix));
            }
            word if word.starts_with("--") => facts.is_whole = false,
            word if word.starts_with('-') && word.len() > 1 => {
                for (at, letter) in word.char_indices().skip(1) {
                    let tail = word.get(at + letter.len_utf8()..).unwrap_or_default();
                    match letter {
                        'n' | 'E' | 'r' | 's' | 'u' | 'z' => continue,
                        'i' => in_place = Some(tail),
                        'e' if tail.is_empty() => scripts.extend(words.next()),
                        'e' => scripts.push(tail),
                        _ => facts.is_whole = false,
                    }
                    break;
                }
            }
            word => rest.push(word),
        }
    }
    if scripts.is_empty() && !rest.is_empty() {
        scripts.push(rest.remove(0));
    }
    if !facts.is_whole || !scripts.iter().all(|script| is_plain_sed(script)) {
        facts.effects.push(CommandEffect::Code(HiddenReason::SedScript));
        facts.is_whole = false;
    }
    if in_place.is_some_and(|suffix| suffix.contains(['/', '*'])) {
        facts.effects.push(CommandEffect::Code(HiddenReason::SedBackup));
        facts.is_whole = false;
    }
    for word in rest {
        match in_place {
            None => facts.effects.push(CommandEffect::Read(word.to_owned())),
            Some(suffix) => {
                facts.effects.push(CommandEffect::Write(word.to_owned()));
                facts.effects.extend((!suffix.is_empty()).then(|| CommandEffect::Write(format!("{word}{suffix}"))));
            }
        }
    }
    facts
}

fn awk(words: &[&str]) -> CommandFacts {
    let mut facts = CommandFacts { is_whole: true, ..CommandFacts::default() };
    let mut rest: Vec<&str> = Vec::new();
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "-F" | "-v" if rest.is_empty() => drop(words.next()),
            word if rest.is_empty() && (word.starts_with("-F") || word.starts_with("-v")) => {}
            word if rest.is_empty() && word.starts_with('-') => facts.is_whole = false,
            word => rest.push(word),
        }
    }
    if !facts.is_whole || !rest.first().is_some_and(|script| is_plain_awk(script)) {
        facts.effects.push(CommandEffect::Code(HiddenReason::AwkScript));
        facts.is_whole = false;
    }
    let files = rest.iter().skip(1).filter(|word| !word.contains('='));
    facts.effects.extend(files.map(|word| CommandEffect::Read((*word).to_owned())));
    facts
}

fn dd(words: &[&str]) -> CommandFacts {
    let mut facts = CommandFacts { is_whole: true, ..CommandFacts::default() };
    for word in words {
        match word.split_once('=') {
            Some(("if", path)) => facts.effects.push(CommandEffect::Read(path.to_owned())),
            Some(("of", path)) => facts.effects.push(CommandEffect::Write(path.to_owned())),
            Some(("bs" | "count" | "skip" | "seek" | "status" | "conv" | "ibs" | "obs", _)) => {}
            _ => facts.is_whole = false,
        }
    }
    facts
}

/// `tar xfC a b` is `tar -x -f a -C b`; an archive on another host is fetched by a program.
fn tar(words: &[&str]) -> Option<CommandFacts> {
    let spelled = dashed(words);
    let spelled: Vec<&str> = spelled.iter().map(String::as_str).collect();
    let (row, left, _) = table::find("tar", &spelled)?;
    let seen = super::flags::read(row, &left);
    let mut facts = by_row(row, &left, 0);
    let makes = ["-c", "-r", "-u", "-A", "--create", "--append", "--update", "--catenate", "--concatenate"];
    if seen.names.iter().any(|name| makes.contains(name)) {
        // Such a call writes only to the archive; the other paths are read.
        let archives: Vec<String> = archives(&left);
        for effect in &mut facts.effects {
            if let CommandEffect::Read(path) = effect
                && archives.contains(path)
            {
                *effect = CommandEffect::Write(std::mem::take(path));
            }
        }
    }
    let is_remote = |word: &&str| word.split('/').next().is_some_and(|first| first.contains(':'));
    if words.iter().any(|word| is_remote(word) && !word.starts_with("--")) {
        facts.effects.push(CommandEffect::Code(HiddenReason::RemoteArchive));
    }
    facts.is_whole = false;
    Some(facts)
}

/// Splits the letters of the old spelling into flags; their values follow in order.
fn dashed(words: &[&str]) -> Vec<String> {
    let Some((first, rest)) = words.split_first().filter(|(first, _)| !first.starts_with('-')) else {
        return words.iter().map(|word| (*word).to_owned()).collect();
    };
    let (mut spelled, mut rest) = (Vec::new(), rest.iter());
    for letter in first.chars() {
        spelled.push(format!("-{letter}"));
        if "fCTXIFbgHKLNV".contains(letter) {
            spelled.extend(rest.next().map(|word| (*word).to_owned()));
        }
    }
    spelled.extend(rest.map(|word| (*word).to_owned()));
    spelled
}

/// The values of `-f` and `--file`.
fn archives(words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let next = || words.get(at + 1).map(|word| (*word).to_owned());
        match word.strip_prefix("--fi") {
            Some(rest) => found.extend(rest.split_once('=').map(|(_, path)| path.to_owned()).or_else(next)),
            None if word.starts_with('-') && !word.starts_with("--") => {
                let tail = word.split_once('f').map(|(_, tail)| tail);
                found.extend(tail.and_then(|tail| if tail.is_empty() { next() } else { Some(tail.to_owned()) }));
            }
            None => {}
        }
    }
    found
}

fn ssh(words: &[&str]) -> CommandFacts {
    const VALUED: [&str; 16] =
        ["-p", "-l", "-i", "-o", "-F", "-J", "-L", "-R", "-D", "-E", "-S", "-b", "-c", "-m", "-W", "-Q"];
    let mut at = 0;
    let mut effects = Vec::new();
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        if matches!(word.get(..2), Some("-o" | "-F" | "-S" | "-E")) {
            effects.push(CommandEffect::Code(HiddenReason::SshOption((*word).to_owned())));
        }
        at += if VALUED.contains(word) { 2 } else { 1 };
    }
    effects.push(CommandEffect::Reach(words.get(at).map(|word| host(word)).unwrap_or_default()));
    effects.push(CommandEffect::Danger(DangerReason::Remote(RemoteEffect::OtherMachine)));
    CommandFacts { effects, ..CommandFacts::default() }
}

/// Words like `host:path` are paths on another machine.
fn remote(program: &str, words: &[&str]) -> Option<CommandFacts> {
    let (row, left, head) = table::find(program, words)?;
    let mut facts = by_row(row, &left, head);
    for effect in &mut facts.effects {
        let (CommandEffect::Read(place) | CommandEffect::Write(place)) = &*effect else { continue };
        if place.split('/').next().is_some_and(|first| first.contains(':')) {
            *effect = CommandEffect::Reach(host(place));
        }
    }
    facts.head = 0;
    Some(facts)
}

/// Files that are sent, and files that are saved under other names.
fn fetch(program: &str, words: &[&str]) -> Option<CommandFacts> {
    let (row, left, _) = table::find(program, words)?;
    let mut facts = by_row(row, &left, 0);
    for word in words {
        let sent = word
            .strip_prefix('@')
            .or_else(|| word.split_once("=@").or_else(|| word.split_once("=<")).map(|(_, path)| path));
        let joined = word.strip_prefix("-d@").or_else(|| word.strip_prefix("-F@"));
        facts
            .effects
            .extend(sent.or(joined).filter(|path| *path != "-").map(|path| CommandEffect::Read(path.to_owned())));
        if let Some(path) = word.strip_prefix("file:") {
            facts.effects.push(CommandEffect::Read(path.trim_start_matches("//").to_owned()));
        }
        if matches!(*word, "-O" | "--remote-name" | "-J" | "--remote-header-name") && program == "curl" {
            facts.effects.push(CommandEffect::Write(".".to_owned()));
        }
    }
    facts.effects.retain(|effect| !matches!(effect, CommandEffect::Reach(host) if host == "file"));
    Some(facts)
}

/// Dangerous commands among the words of an unknown program: `unshare git push`.
pub(super) fn hidden_effects(words: &[&str]) -> Vec<CommandEffect> {
    let starts = words.iter().enumerate().take(DEPTH_MAX).filter(|(_, word)| table::is_risky(word));
    let risky = starts.filter_map(|(at, _)| {
        let inner = words.get(at..)?;
        let is_risky = |effect: &CommandEffect| matches!(effect, CommandEffect::Danger(_) | CommandEffect::Delete(_));
        row_effects(inner).effects.iter().any(is_risky).then(|| run(inner))
    });
    risky.flatten().collect()
}
