//! What commands do, as a table.

use super::CommandEffect::{Delete, Reach, Read, Run, Write};
use super::*;

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn effects(text: &str) -> (bool, Vec<CommandEffect>) {
    let facts = effects_of(&words(text));
    (facts.is_whole, facts.effects)
}

#[test]
fn places_programs_and_hosts() {
    let own = |text: &str| text.to_owned();
    let table = [
        ("ls -la src", true, vec![Read(own("src"))]),
        ("ls --frobnicate", false, vec![]),
        ("cat - a", true, vec![Read(own("a"))]),
        ("grep -rn x src", true, vec![Read(own("src"))]),
        ("grep -e x src y", true, vec![Read(own("src")), Read(own("y"))]),
        ("cp a b c", true, vec![Read(own("a")), Read(own("b")), Write(own("c")), Write(own("c/a")), Write(own("c/b"))]),
        ("cp -t d a", true, vec![Write(own("d")), Read(own("a"))]),
        ("rm -rf x", true, vec![Delete(own("x"))]),
        ("sort -oout x", true, vec![Write(own("out")), Read(own("x"))]),
        ("sort --outp=out x", true, vec![Write(own("out")), Read(own("x"))]),
        ("sort --o=out x", true, vec![Write(own("out")), Read(own("x"))]),
        ("sed -i.json s/a/b/ .mcp", true, vec![Write(own(".mcp")), Write(own(".mcp.json"))]),
        ("sed --in-place=.bak s/a/b/ x", true, vec![Write(own("x")), Write(own("x.bak"))]),
        ("man ./secrets/x", true, vec![Read(own("./secrets/x"))]),
        ("curl http://ok.org\\@evil.org", false, vec![Reach(own(""))]),
        ("go test -o bin ./...", false, vec![Write(own("bin")), Read(own("./..."))]),
        ("go test --exec=sh ./...", false, vec![Run(words("sh")), Read(own("./..."))]),
        ("timeout -k 5 30 rm x", true, vec![Run(words("rm x"))]),
        ("nice -n 5 ls -l", true, vec![Run(words("ls -l"))]),
        ("find a b -exec rm {} ;", true, vec![Read(own("a")), Read(own("b")), Run(words("rm a")), Run(words("rm b"))]),
        ("curl -o x https://u@Host.org:8/p", false, vec![Write(own("x")), Reach(own("host.org:8"))]),
        ("curl https://h.org:443 http://h.org:80/x", false, vec![Reach(own("h.org")), Reach(own("h.org"))]),
        ("curl h.org:8080 http://h.org:443", false, vec![Reach(own("h.org:8080")), Reach(own("h.org:443"))]),
        ("rsync -a src h.org:dst", false, vec![Read(own("src")), Reach(own("h.org"))]),
        ("sed -n 1,5p x", true, vec![Read(own("x"))]),
        ("sed -i s/a/b/ x", true, vec![Write(own("x"))]),
        ("dd if=a of=b bs=1", true, vec![Read(own("a")), Write(own("b"))]),
        ("git log --output=x", true, vec![Write(own("x"))]),
        ("git log -- a", true, vec![Read(own("a"))]),
        ("frobnicate x", false, vec![]),
        ("./ls x", false, vec![Read(own("x"))]),
        ("/bin/ls x", true, vec![Read(own("x"))]),
    ];
    for (text, is_whole, want) in table {
        assert_eq!(effects(text), (is_whole, want), "{text}");
    }
}

#[test]
fn danger_has_its_reason() {
    let table = [
        ("git push", "it publishes commits"),
        ("git -C x push", "it publishes commits"),
        ("cargo +nightly publish", "it publishes"),
        ("npm --loglevel silent publish", "it publishes"),
        ("kubectl -n x apply -f y", "it changes what runs elsewhere"),
        ("make deploy", "`deploy` sounds like publishing or deploying"),
        ("./deploy.sh", "`deploy.sh` sounds like publishing or deploying"),
        ("gh pr create", "it sends a message to others in your name"),
        ("ssh host ls", "it acts on another machine"),
    ];
    for (text, want) in table {
        let told = effects_of(&words(text)).effects.into_iter().find_map(|effect| match effect {
            CommandEffect::Danger(why) => Some(why),
            _ => None,
        });
        assert_eq!(told.map(|why| why.to_string()).as_deref(), Some(want), "{text}");
    }
    for text in [
        "cargo test release",
        "kubectl get pods",
        "gh pr view 1",
        "cargo build --release",
        "npm test",
        "git pull",
        "make test",
    ] {
        let is_danger = |effect: &CommandEffect| matches!(effect, CommandEffect::Danger(_));
        assert!(!effects_of(&words(text)).effects.iter().any(is_danger), "{text}");
    }
}

#[test]
fn a_yes_is_remembered_by_the_kind_of_command() {
    let table = [
        ("cargo test -p core", "Bash(cargo test:*)"),
        ("timeout 5 cargo test", "Bash(cargo test:*)"),
        ("npm run build", "Bash(npm run build:*)"),
        ("make test", "Bash(make test:*)"),
        ("git add -A", "Bash(git add:*)"),
        ("pytest -q", "Bash(pytest:*)"),
        ("python3 x.py", "Bash(python3 x.py)"),
        ("git -C x add y", "Bash(git -C x add y)"),
        ("cargo +nightly test", "Bash(cargo +nightly test)"),
        ("./run.sh a", "Bash(./run.sh a)"),
        ("frobnicate a", "Bash(frobnicate a)"),
    ];
    for (text, want) in table {
        assert_eq!(crate::policy::grant::proposed(&words(text)), want, "{text}");
    }
}

#[test]
fn unknown_effects_are_reported() {
    for text in
        ["sed -i.claude/* s/a/b/ x", "sed --in-place=a/* s/a/b/ x", "jq include\u{20}\"x\";.", "jq import\"x\"as$d;$d"]
    {
        let (is_whole, effects) = effects(text);
        assert!(
            !is_whole && effects.iter().any(|effect| matches!(effect, CommandEffect::Code(_))),
            "{text}: {effects:?}"
        );
    }
}

#[test]
fn contents_of_the_history_are_told_from_names() {
    let shown = [
        "git cat-file blob abc123",
        "git cat-file -p abc123",
        "git show --stat abc123",
        "git show --stat v1.0",
        "git show --stat HEAD -p",
        "git diff --stat -p",
        "git log --unified=1",
        "git log --unif=1",
        "git log --patch-with-stat",
        "git log -U1",
        "git log --word-diff",
        "git log -Ssecret",
        "git show :/words",
        "git show :(top).env",
        "git cat-file -p :/words",
    ];
    let names = [
        "git cat-file -t abc123",
        "git show --stat HEAD~2",
        "git show --name-only HEAD -- src",
        "git diff --stat",
        "git log --oneline -5",
        "git log --color --stat",
        "git log -- -p",
    ];
    let tells = |text: &&str| effects(text).1.contains(&CommandEffect::History);
    assert_eq!(shown.iter().find(|text| !tells(text)), None);
    assert_eq!(names.iter().find(|text| tells(text)), None);
}

#[test]
fn a_file_of_the_index_is_read() {
    for text in
        ["git show :.env", "git show :0:.env", "git show :3:.env", "git cat-file -p :.env", "git cat-file -p :2:.env"]
    {
        let (_, effects) = effects(text);
        assert!(effects.contains(&CommandEffect::Read(".env".to_owned())), "{text}: {effects:?}");
    }
}

mod git;
mod programs;
