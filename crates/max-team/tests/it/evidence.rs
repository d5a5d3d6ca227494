//! Evidence that is not as it was written is never shown as if it were.

use std::fs;
use std::path::Path;

use max_team_testkit::{Gate, ModelServer, Reply};
use serde_json::json;

use crate::keep::with_a_lost_page;
use crate::program::{Program, finish};

/// Changes a letter of every text like this in the file.
fn forge(program: &Program, words: &str) {
    let path = program.home().join("journal.db");
    let mut bytes = fs::read(&path).unwrap();
    let found = bytes.windows(words.len()).enumerate().filter(|(_, window)| *window == words.as_bytes());
    let places: Vec<usize> = found.map(|(at, _)| at).collect();
    assert!(!places.is_empty());
    places.iter().for_each(|at| bytes[at + words.len() - 1] ^= 1);
    fs::write(path, bytes).unwrap();
}

fn names(folder: &Path) -> Vec<String> {
    fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn forged_entries_are_marked_wherever_they_are_shown() {
    let server = ModelServer::start([Reply::text("done"), Reply::text("more")]);
    let program = Program::with(&server);
    assert_eq!(program.run(&["-p", "pay marmalade"]).code, 0);
    assert_eq!(program.run(&["audit", "show"]).code, 0);
    assert!(program.run(&["replay"]).out.contains("byte for byte"));
    forge(&program, "pay marmalade");
    let why = "the payload does not fit its hash";
    let shown = program.run(&["audit", "show", "--kind", "said"]);
    assert!(shown.out.contains(&format!("said (damaged: {why}): pay marmalad")), "{shown:?}");
    let lines = program.run(&["audit", "show", "--kind", "said", "--json"]);
    assert_eq!(lines.lines()[0]["damaged"], json!([why]));
    let exported = program.run(&["audit", "export"]);
    let marked: Vec<_> = exported.lines().into_iter().filter(|line| line.get("damaged").is_some()).collect();
    assert!(marked.iter().any(|line| line["event"] == "said" && line["damaged"] == json!([why])), "{marked:?}");
    assert!(exported.lines().iter().any(|line| line.get("damaged").is_none()));
    let page = program.run(&["audit", "export", "--html", "page.html"]);
    let html = program.read("page.html");
    assert!(html.contains("<tr class=\"damaged\">") && html.contains(why), "{html}");
    for ran in [&shown, &lines, &exported, &page] {
        assert!(ran.code == 1 && ran.err.contains("damaged, and marked"), "{ran:?}");
        assert!(ran.err.contains("max-team audit verify"), "{ran:?}");
    }
    let replayed = program.run(&["replay"]);
    assert!(replayed.code == 1 && !replayed.out.contains("byte for byte"), "{replayed:?}");
    let recorded = program.run(&["replay", "--record", "run.jsonl"]);
    assert!(recorded.code == 1 && !program.project().join("run.jsonl").exists(), "{recorded:?}");
    let gone_on = program.run(&["-c", "-p", "more", "--record", "more.jsonl"]);
    assert!(gone_on.code == 1 && gone_on.out.contains("more"), "{gone_on:?}");
    assert!(!program.project().join("more.jsonl").exists(), "{gone_on:?}");
    let mut chinese = program.command(&["audit", "show", "--kind", "said"]);
    let chinese = crate::program::finish(chinese.env("MAX_LANG", "zh").spawn().unwrap());
    assert!(chinese.out.contains("（已损坏：内容与其哈希不符）"), "{chinese:?}");
}

#[test]
fn a_journal_without_its_end_is_read_and_the_newest_backup_named() {
    let replies: Vec<Reply> = (0..4).map(|number| Reply::text(format!("answer {number} ").repeat(400))).collect();
    let server = ModelServer::start(replies);
    let program = Program::with(&server);
    for number in 0..4 {
        assert_eq!(program.run(&["-p", &format!("question {number}")]).code, 0);
    }
    assert_eq!(program.run(&["backup"]).code, 0);
    let copy = names(&program.home()).into_iter().find(|name| name.starts_with("journal-2")).unwrap();
    let whole = program.journal();
    let path = program.home().join("journal.db");
    let length = fs::metadata(&path).unwrap().len();
    fs::File::options().write(true).open(&path).unwrap().set_len(length - 4_096).unwrap();
    let exported = program.run(&["audit", "export"]);
    let mut lines = exported.lines();
    // What breaks off says so where it does.
    let cut = lines.pop().unwrap();
    assert!(cut["unread"]["from"] == lines.len() + 1 && cut.get("seq").is_none(), "{cut}");
    let kept = program.run(&["audit", "export", "--jsonl", "rest.jsonl"]);
    assert!(kept.code == 1 && program.read("rest.jsonl") == exported.out, "{kept:?}");
    assert!(
        lines.len() > whole.len() / 2 && lines[..] == whole[..lines.len()],
        "{} lines: {}",
        lines.len(),
        exported.err
    );
    for words in [&["audit", "verify"][..], &["doctor"], &["-p", "hi"]] {
        let ran = program.run(words);
        let told = format!("{}{}", ran.out, ran.err);
        assert!(ran.code == 1 && told.contains(&copy) && told.contains("max-team restore"), "{words:?}: {ran:?}");
        assert!(!told.contains("`max-team doctor` tells more"), "{ran:?}");
    }
    fs::write(&path, "").unwrap();
    let emptied = program.run(&["doctor"]);
    assert!(emptied.out.contains("0 bytes") && emptied.out.contains(&copy), "{emptied:?}");
}

/// A page in the middle is lost: what it hides is named, and the rest is checked and can be had.
#[test]
fn entries_behind_a_damaged_page_are_named_and_exported() {
    let fifth = |bytes: &[u8]| bytes.windows(16).position(|words| words == b"\"text\":\"answer 4").unwrap();
    let (program, whole) = with_a_lost_page(fifth);
    let found = program.run(&["audit", "verify", "--json"]).json();
    let detail = found["faults"][0]["detail"].as_str().unwrap().to_owned();
    let (first, last) = match detail.split(' ').collect::<Vec<_>>()[..] {
        ["entries", first, "to", last, "cannot", "be", "read"] => (first, last),
        ["entry", one, "cannot", "be", "read"] => (one, one),
        _ => panic!("{found}"),
    };
    let [first, last] = [first, last].map(|number| number.parse::<usize>().unwrap());
    assert_eq!(found["entries"], whole.len() - (last + 1 - first), "{found}");
    assert!(found["faults"].as_array().unwrap().iter().all(|fault| fault["kind"] == "Damaged"), "{found}");
    let told = program.run(&["audit", "verify"]);
    assert!(told.code == 1 && told.out.contains(&format!("the file: damaged: {detail}\n")), "{told:?}");
    let after = format!("audit export --after {last}");
    assert!(told.err.contains(&format!("`max-team {after}` exports the entries after the damage")), "{told:?}");
    let rest = program.run(&after.split(' ').collect::<Vec<_>>());
    assert_eq!((rest.code, &rest.lines()[..]), (0, &whole[last..]));
    // What is shown or exported goes on behind it, and names it in its place.
    let gap = json!({ "unread": { "from": first, "to": last } });
    let read = [&whole[..first - 1], std::slice::from_ref(&gap), &whole[last..]].concat();
    for words in ["export", "audit export --after 0"] {
        let exported = program.run(&words.split(' ').collect::<Vec<_>>());
        assert_eq!((exported.code, exported.lines()), (1, read.clone()), "{words}");
    }
    let opened = whole.iter().filter(|line| line["event"] == "session_opened").nth(4).unwrap();
    let (_, session) = opened["stream"].as_str().unwrap().split_once("ses_").unwrap();
    let of_one = program.run(&["export", &format!("ses_{session}")]).lines();
    assert!(of_one.contains(&gap) && of_one.contains(opened) && of_one.len() > 4, "{of_one:?}");
    let shown = program.run(&["audit", "show"]);
    assert!(shown.out.contains(&format!("\n(damaged: {detail})\n")) && shown.out.contains("question 7"), "{shown:?}");
    let wanted = program.run(&["audit", "show", "--kind", "turn_ended", "--json"]).lines();
    assert!(
        wanted.contains(&gap) && wanted.iter().filter(|line| line["event"] == "turn_ended").count() >= 6,
        "{wanted:?}"
    );
    let page = program.run(&["audit", "export", "--html", "page.html"]);
    let html = program.read("page.html");
    assert!(html.contains(&format!("colspan=\"9\">(damaged: {detail})</td>")) && html.contains("question 7"), "{html}");
    for ran in [&shown, &page] {
        assert!(ran.code == 1 && ran.err.contains("part of the journal cannot be read"), "{ran:?}");
    }
    let chinese = program.variable("LC_ALL", "zh_CN.UTF-8").run(&["audit", "verify"]);
    assert!(chinese.out.contains("条无法读取") && chinese.err.contains(&after), "{chinese:?}");
}

#[test]
fn an_unknown_filter_is_refused_with_the_known_ones() {
    let server = ModelServer::start([Reply::text("done")]);
    let program = Program::with(&server);
    assert_eq!(program.run(&["-p", "hi"]).code, 0);
    for (words, there) in [
        (["--kind", "bogus"], "`turn_started`"),
        (["--agent", "nobody"], "`max-"),
        (["--task", "nosuch"], "tasks: none"),
    ] {
        for command in [["audit", "show"], ["audit", "export"]] {
            let ran = program.run(&[command, words].concat());
            assert!(ran.code == 2 && ran.out.is_empty() && ran.err.contains(there), "{ran:?}");
        }
    }
    // What could have been and was not is an answer.
    let none = program.run(&["audit", "show", "--kind", "tool_intent", "--since", "00:00"]);
    assert!(none.code == 0 && none.out.is_empty(), "{none:?}");
    let refused = program.run(&["audit", "export", "--kind", "bogus", "--jsonl", "all.jsonl"]);
    assert!(refused.code == 2 && !names(&program.project()).iter().any(|name| name.contains("jsonl")), "{refused:?}");
}

/// Half a file under a whole one's name would be taken for one. Needs to be root, as CI is.
#[test]
fn a_full_disk_leaves_nothing_half_written() {
    let server = ModelServer::start([Reply::text("x".repeat(200_000))]);
    let program = Program::with(&server);
    assert_eq!(program.run(&["-p", "hi"]).code, 0);
    let small = program.project().join("small");
    fs::create_dir(&small).unwrap();
    let mount = |command: &str, words: &[&str]| {
        std::process::Command::new(command).args(words).arg(&small).status().is_ok_and(|status| status.success())
    };
    if !mount("mount", &["-t", "tmpfs", "-o", "size=64k", "tmpfs"]) {
        println!("skipped: only root may mount");
        return;
    }
    let tries = [
        &["export", "--jsonl", "small/all.jsonl"][..],
        &["audit", "export", "--jsonl", "small/all.jsonl"],
        &["backup", "small/copy.db"],
    ];
    let ran: Vec<_> = tries.iter().map(|words| (program.run(words), names(&small))).collect();
    assert!(mount("umount", &[]));
    for (ran, left) in ran {
        assert!(ran.code == 1 && ran.err.contains("small/") && left.is_empty(), "{left:?} {ran:?}");
    }
}

#[test]
fn a_seal_kept_elsewhere_is_compared_with_the_journal() {
    let server = ModelServer::start([Reply::text("one"), Reply::text("two"), Reply::text("three")]);
    let program = Program::with(&server);
    assert_eq!(program.run(&["-p", "first"]).code, 0);
    let printed = program.run(&["audit", "seal"]);
    let written = program.run(&["audit", "seal", "seal.json"]);
    assert_eq!((printed.code, written.code), (0, 0), "{printed:?} {written:?}");
    assert_eq!(printed.out, program.read("seal.json"));
    assert!(written.err.contains("audit verify --seal"), "{written:?}");
    assert_eq!(program.run(&["audit", "seal", "seal.json"]).code, 1, "nothing is overwritten");
    assert_eq!(program.run(&["-c", "-p", "second"]).code, 0);
    let held = program.run(&["audit", "verify", "--seal", "seal.json"]);
    assert!(held.code == 0 && held.out.contains("`seal.json` seals entries 1 to"), "{held:?}");

    fs::remove_dir_all(program.home()).unwrap();
    assert_eq!(program.run(&["-p", "another"]).code, 0);
    assert_eq!(program.run(&["audit", "verify"]).code, 0);
    let unlike = program.run(&["audit", "verify", "--seal", "seal.json"]);
    assert!(unlike.code == 1 && unlike.out.contains("given seal"), "{unlike:?}");
    let program = program.file("no-seal.json", "{}");
    let unread = program.run(&["audit", "verify", "--seal", "no-seal.json"]);
    assert!(unread.code == 2 && unread.err.contains("cannot be read as a seal"), "{unread:?}");
}

#[test]
fn a_journal_that_is_deleted_during_a_run_ends_it_with_an_error() {
    let gate = Gate::new();
    let server = ModelServer::start([Reply::text("done").gate_before(&gate)]);
    let program = Program::with(&server);
    let run = program.start(&["-p", "hello"]);
    gate.wait_reached();
    fs::remove_dir_all(program.home()).unwrap();
    gate.open();
    let ran = finish(run);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("was deleted, moved or replaced while it was in use"), "{ran:?}");
}
