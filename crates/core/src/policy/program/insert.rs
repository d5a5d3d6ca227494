//! Values inserted into a parsed command: an argument stays data wherever it is put.
//!
//! A template is a command whose words contain a mark in place of each value. The mark is replaced inside the parsed
//! word, so quoting cannot be left. What remains are positions in which a program reads a word as code or as an option:
//! a mark in a code position is refused for every value, and an option is accepted only if it adds no effect.

use super::super::command_line::{Redirect, RedirectTarget, SimpleCommand};
use super::table::is_interpreter;
use super::{CommandEffect, CommandFacts, DEPTH_MAX, effects_of, variable};

/// Programs with a small language in one of their words; their other words are files.
const LANGUAGES: [&str; 15] =
    ["sed", "gsed", "awk", "gawk", "mawk", "nawk", "jq", "yq", "sqlite3", "psql", "mysql", "duckdb", "bc", "dc", "m4"];
/// Programs that hand their words to a shell, to another machine or to a program that they start.
const STARTERS: [&str; 36] = [
    "at",
    "batch",
    "bwrap",
    "caffeinate",
    "chroot",
    "cmd",
    "crontab",
    "doas",
    "docker",
    "entr",
    "eval",
    "exec",
    "expect",
    "firejail",
    "flock",
    "gdb",
    "kubectl",
    "ltrace",
    "mosh",
    "nsenter",
    "parallel",
    "perf",
    "podman",
    "powershell",
    "proot",
    "runuser",
    "screen",
    "script",
    "ssh",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "tmux",
    "unshare",
    "watch",
];
/// Sub-commands of interpreters after which comes a script, a test or a package to run.
const STEPS: [&str; 3] = ["run", "test", "x"];
/// Programs whose `NAME=value` words set variables that their recipes run.
const ASSIGNING: [&str; 4] = ["make", "gmake", "just", "env"];

/// Inserts values into one command of a line. `fill` replaces a word with a mark; `may_be_program` is set for our own
/// values (paths), which may also name the program.
pub fn insert(
    template: &SimpleCommand,
    mark: &str,
    may_be_program: bool,
    fill: impl Fn(&str) -> Vec<String>,
) -> Result<SimpleCommand, String> {
    let one = |word: &String| match fill(word).as_slice() {
        _ if !word.contains(mark) => Ok(word.clone()),
        [one] if !one.is_empty() => Ok(one.clone()),
        _ => Err("it stands for one word, and the value is empty or several words".to_owned()),
    };
    for (name, value) in &template.env {
        if name.contains(mark) || (value.contains(mark) && !variable(name, value).is_empty()) {
            return Err(format!("it is the value of `{name}`, a variable that can change which program runs"));
        }
    }
    let env = template.env.iter().map(|(name, value)| Ok((name.clone(), fill(value).concat())));
    let flows = template.flows.iter().map(|Redirect { fd, to }| {
        let to = match to {
            RedirectTarget::Read(path) => RedirectTarget::Read(one(path)?),
            RedirectTarget::Write(path) => RedirectTarget::Write(one(path)?),
            RedirectTarget::Append(path) => RedirectTarget::Append(one(path)?),
            RedirectTarget::Same(fd) => RedirectTarget::Same(*fd),
        };
        Ok(Redirect { fd: *fd, to })
    });
    let (env, flows) = (env.collect::<Result<_, String>>()?, flows.collect::<Result<_, String>>()?);
    Ok(SimpleCommand { join: template.join, env, flows, argv: words(&template.argv, mark, may_be_program, fill)? })
}

fn words(
    template: &[String],
    mark: &str,
    may_be_program: bool,
    fill: impl Fn(&str) -> Vec<String>,
) -> Result<Vec<String>, String> {
    let is_marked = |word: &String| word.contains(mark);
    if !template.iter().any(is_marked) {
        return Ok(template.to_vec());
    }
    let Some((program, rest)) = template.split_first() else { return Ok(Vec::new()) };
    let program = match program.contains(mark) {
        false => program.clone(),
        true if may_be_program => fill(program).concat(),
        true => return Err("it stands in place of a program".to_owned()),
    };
    let template: Vec<String> = std::iter::once(program.clone()).chain(rest.iter().cloned()).collect();
    placed(&template, mark, 0)?;
    let (mut filled, mut option, mut is_behind) = (vec![program.clone()], None, false);
    for word in rest {
        is_behind |= word == "--";
        if !is_marked(word) {
            filled.push(word.clone());
            continue;
        }
        for value in fill(word) {
            if value.contains('\0') {
                return Err("the value has a zero byte".to_owned());
            }
            if ASSIGNING.contains(&name_of(&program)) && value.contains('=') && !word.contains('=') {
                return Err(format!("`{program}` would take the value for a variable"));
            }
            if value.starts_with('-') && value.len() > 1 && !word.starts_with('-') && !is_behind {
                option = Some(value.clone());
            }
            filled.push(value);
        }
    }
    unchanged(&template, &filled, option.as_deref())?;
    Ok(filled)
}

fn name_of(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether every mark stands where a program expects data.
fn placed(argv: &[String], mark: &str, depth: usize) -> Result<(), String> {
    let is_marked = |word: &String| word.contains(mark);
    let Some((program, rest)) = argv.split_first().filter(|_| argv.iter().any(is_marked)) else { return Ok(()) };
    if is_marked(program) || depth > DEPTH_MAX {
        return Err("it stands in place of a program".to_owned());
    }
    let name = name_of(program);
    if STARTERS.contains(&name) {
        return Err(format!("`{name}` runs what stands there"));
    }
    let facts = effects_of(argv);
    if LANGUAGES.contains(&name) {
        return language(name, rest, mark, &facts);
    }
    if is_interpreter(name) {
        // Words behind a script file are its arguments; anything else may be code.
        let has_steps = matches!(name, "deno" | "bun");
        let mut words = rest.iter().skip_while(|word| has_steps && STEPS.contains(&word.as_str()));
        let is_file = words.next().is_some_and(|word| !word.starts_with(['-', '+']) && !is_marked(word));
        return if is_file { Ok(()) } else { Err(format!("`{name}` may run what stands there as code")) };
    }
    for effect in &facts.effects {
        match effect {
            CommandEffect::Code(why) => return Err(format!("the command runs something that cannot be seen: {why}")),
            CommandEffect::Run(inner) => placed(inner, mark, depth + 1)?,
            _ => {}
        }
    }
    if facts.is_whole { Ok(()) } else { behind_options(name, rest, mark) }
}

/// An option of a program that is not known whole may take code: `-e CODE`, `--eval=CODE`.
fn behind_options(name: &str, rest: &[String], mark: &str) -> Result<(), String> {
    let mut before = None;
    for word in rest.iter().take_while(|word| *word != "--") {
        let option = std::iter::once(word).chain(before).find(|word| word.starts_with('-') && word.len() > 1);
        if let Some(option) = option.filter(|_| word.contains(mark)) {
            let option = option.split('=').next().unwrap_or(option).replace(mark, "…");
            return Err(format!("`{name}` may run what stands behind its option `{option}` as code"));
        }
        before = Some(word);
    }
    Ok(())
}

/// In a command with a small language only files, and `awk -v name=value`, are data.
fn language(name: &str, rest: &[String], mark: &str, facts: &CommandFacts) -> Result<(), String> {
    let is_file = |word: &String| {
        facts.effects.iter().any(|effect| match effect {
            CommandEffect::Read(path) | CommandEffect::Write(path) => path == word,
            _ => false,
        })
    };
    for (index, word) in rest.iter().enumerate().filter(|(_, word)| word.contains(mark)) {
        let before = index.checked_sub(1).and_then(|index| rest.get(index));
        let is_variable = name.ends_with("awk")
            && before.is_some_and(|before| before == "-v")
            && word.split('=').next().is_some_and(|name| !name.contains(mark));
        if !is_variable && !is_file(word) {
            return Err(format!("it stands inside the program text of `{name}`"));
        }
    }
    Ok(())
}

/// The programs that a command starts, and its other effects.
#[derive(Debug, Default, PartialEq, Eq)]
struct CommandShape {
    programs: Vec<String>,
    code: usize,
    others: usize,
}

impl CommandShape {
    fn of(argv: &[String], depth: usize) -> Self {
        let mut shape = Self { programs: argv.first().cloned().into_iter().collect(), ..Self::default() };
        for effect in effects_of(argv).effects {
            match effect {
                CommandEffect::Run(inner) if depth < DEPTH_MAX => {
                    let inner = Self::of(&inner, depth + 1);
                    shape.programs.extend(inner.programs);
                    shape.code += inner.code;
                    shape.others += inner.others;
                }
                CommandEffect::Run(_) | CommandEffect::Code(_) => shape.code += 1,
                CommandEffect::Write(_)
                | CommandEffect::Delete(_)
                | CommandEffect::Reach(_)
                | CommandEffect::Danger(_)
                | CommandEffect::Discard => {
                    shape.others += 1;
                }
                CommandEffect::Read(_) | CommandEffect::History => {}
            }
        }
        shape
    }
}

/// Whether a filled command starts the same programs as its template, and an inserted option adds nothing.
fn unchanged(template: &[String], filled: &[String], option: Option<&str>) -> Result<(), String> {
    let (before, after) = (CommandShape::of(template, 0), CommandShape::of(filled, 0));
    if before.programs != after.programs || before.code != after.code {
        return Err("with this value the command would run something else".to_owned());
    }
    if let Some(option) = option
        && (!effects_of(filled).is_whole || after.others > before.others)
    {
        return Err(format!(
            "the value `{option}` would be an option of the command; write `--` before the placeholder to pass it as data"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MARK: &str = "slotz";

    fn put(template: &[&str], value: &str) -> Result<Vec<String>, String> {
        let argv = template.iter().map(|word| (*word).to_owned()).collect();
        let part = SimpleCommand { argv, ..SimpleCommand::default() };
        insert(&part, MARK, false, |word| vec![word.replace(MARK, value)]).map(|part| part.argv)
    }

    #[test]
    fn values_are_data_or_refused() {
        let open: [(&[&str], &str); 17] = [
            (&["git", "log", MARK], "main"),
            (&["git", "diff", MARK], "--staged"),
            (&["git", "log", "--grep=slotz"], "'; rm -rf / #"),
            (&["grep", "-r", "--", MARK, "src"], "--include=x"),
            (&["cat", "docs/slotz.md"], "$(id)"),
            (&["echo", MARK], "a; b | c && d > e"),
            (&["find", ".", "-name", MARK], "*.rs"),
            (&["find", MARK, "-exec", "cat", "{}", ";"], "src"),
            (&["sed", "-n", "1p", MARK], "a.txt"),
            (&["awk", "-v", "n=slotz", "{print n}", "a"], "x\"; system(1)"),
            (&["python3", "tools/x.py", MARK], "__import__('os')"),
            (&["bash", "x.sh", MARK], "$(id)"),
            (&["timeout", "5", "cat", MARK], "a"),
            (&["mytool", MARK], "word"),
            (&["mytool", "-v", "--", MARK], "word"),
            (&["deno", "run", "x.ts", MARK], "word"),
            (&["bun", "x.ts", MARK], "word"),
        ];
        for (template, value) in open {
            assert!(put(template, value).is_ok(), "{template:?} {value}: {:?}", put(template, value));
        }
        let closed: [(&[&str], &str); 42] = [
            (&[MARK], "ls"),
            (&["bin/slotz"], "x"),
            (&["sh", "-c", "echo slotz"], "x"),
            (&["bash", "-c", "echo \"$1\"", "x", MARK], "x"),
            (&["bash", MARK], "x"),
            (&["python3", "-c", "print('slotz')"], "x"),
            (&["node", "-e", MARK], "1"),
            (&["perl", "-ne", "print if /slotz/", "a"], "x"),
            (&["awk", "/slotz/ {print}", "a"], "x"),
            (&["gawk", "{print}", "-v", "slotz=1"], "x"),
            (&["sed", "s/slotz/x/", "a"], "x"),
            (&["sed", "-n", "slotzp", "a"], "1"),
            (&["jq", ".slotz", "a.json"], "x"),
            (&["eval", MARK], "x"),
            (&["env", MARK], "ls"),
            (&["env", "A=1", MARK], "ls"),
            (&["xargs", MARK], "rm"),
            (&["timeout", "5", MARK], "ls"),
            (&["nohup", "timeout", "5", MARK], "ls"),
            (&["find", ".", "-exec", MARK, "{}", ";"], "rm"),
            (&["find", ".", "-exec", "sh", "-c", MARK, ";"], "rm"),
            (&["find", ".", MARK], "-delete"),
            (&["ssh", "host", MARK], "x"),
            (&["watch", MARK], "x"),
            (&["sudo", MARK], "x"),
            (&["sqlite3", "a.db", "select slotz"], "1"),
            (&["git", "diff", MARK], "--output=x"),
            (&["git", "-c", "core.pager=slotz", "log"], "x"),
            (&["make", MARK], "SHELL=/tmp/x"),
            (&["mytool", MARK], "--hook=x"),
            (&["deno", "run", MARK], "x.ts"),
            (&["bun", "run", MARK], "x.ts"),
            (&["bun", "x", MARK], "pkg"),
            (&["bun", "test", MARK], "x"),
            (&["Rscript", "-e", "print(slotz)"], "x"),
            (&["julia", "-e", MARK], "x"),
            (&["elixir", "-e", MARK], "x"),
            (&["gnuplot", "-e", "slotz"], "x"),
            (&["mongosh", "--eval", MARK], "x"),
            (&["mongosh", "--eval=slotz"], "x"),
            (&["nix", "eval", "--expr", MARK], "x"),
            (&["mytool", "-xslotz"], "x"),
        ];
        for (template, value) in closed {
            assert!(put(template, value).is_err(), "{template:?} {value}");
        }
    }

    #[test]
    fn variables_and_redirections_take_one_word() {
        let part = |name: &str, to: RedirectTarget| SimpleCommand {
            env: vec![(name.to_owned(), "slotz".to_owned())],
            argv: vec!["cat".to_owned()],
            flows: vec![Redirect { fd: 1, to }],
            ..SimpleCommand::default()
        };
        let put = |part: &SimpleCommand, value: &str| insert(part, MARK, false, |word| vec![word.replace(MARK, value)]);
        let file = || RedirectTarget::Write("slotz".to_owned());
        assert_eq!(put(&part("LANG", file()), "a b; c").unwrap().env[0].1, "a b; c");
        for (name, value) in [("LD_PRELOAD", "x.so"), ("PATH", "."), ("GIT_PAGER", "sh"), ("LANG", "")] {
            assert!(put(&part(name, file()), value).is_err(), "{name} {value}");
        }
    }

    proptest! {
        #[test]
        fn any_value_leaves_the_structure(
            template in prop::sample::select(vec![
                vec!["git", "log", "slotz"], vec!["grep", "-r", "slotz", "src"], vec!["echo", "a slotz b"],
                vec!["find", "slotz", "-name", "x"], vec!["sed", "-n", "1p", "slotz"], vec!["timeout", "5", "ls", "slotz"],
                vec!["cat", "--", "slotz"], vec!["mytool", "--x=slotz"], vec!["tar", "-tf", "slotz"],
            ]),
            value in "[-a-z=;|&$`'\"(){}<>*~#!\\\\ \n/.@:A-Z0-9]{0,24}",
        ) {
            let argv: Vec<String> = template.iter().map(|word| (*word).to_owned()).collect();
            if let Ok(filled) = put(&template, &value) {
                prop_assert_eq!(filled.len(), argv.len());
                prop_assert_eq!(CommandShape::of(&filled, 0).programs, CommandShape::of(&argv, 0).programs);
                for (word, own) in filled.iter().zip(&argv) {
                    prop_assert_eq!(word, &own.replace(MARK, &value));
                }
            }
        }
    }
}
