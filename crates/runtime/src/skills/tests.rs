//! Skills as the world writes them.

use std::path::{Path, PathBuf};

use super::*;

/// Its name and description, or why it is no skill.
type Want = Result<(&'static str, &'static str), &'static str>;

/// What a folder is called, what its file holds, and what is to come of it.
const FILES: [(&str, &str, Want); 34] = [
    ("plain", "---\nname: plain\ndescription: A b.\n---\nx", Ok(("plain", "A b."))),
    ("quoted", "---\nname: \"quoted\"\ndescription: 'A: b'\n---\n", Ok(("quoted", "A: b"))),
    ("colons", "---\nname: colons\ndescription: Use when: asked: now\n---\n", Ok(("colons", "Use when: asked: now"))),
    ("crlf", "---\r\nname: crlf\r\ndescription: A\r\n---\r\nx\r\n", Ok(("crlf", "A"))),
    ("bom", "\u{feff}---\nname: bom\ndescription: A\n---\n", Ok(("bom", "A"))),
    ("tabs", "---\nname:\ttabs\ndescription:\tA\nmetadata:\n\tversion: 1\n---\n", Ok(("tabs", "A"))),
    ("folded", "---\nname: folded\ndescription: >\n  one\n  two\n---\n", Ok(("folded", "one two"))),
    ("block", "---\nname: block\ndescription: |\n  one\n  two\n---\n", Ok(("block", "one two"))),
    ("long-lines", "---\nname: long-lines\ndescription:\n  one\n  two\n---\n", Ok(("long-lines", "one two"))),
    ("comments", "---\n# who\nname: comments # what\ndescription: A # why\n---\n", Ok(("comments", "A"))),
    ("when", "---\nname: when\ndescription: A.\nwhen_to_use: On b.\n---\n", Ok(("when", "A. On b."))),
    ("天气", "---\nname: 天气\ndescription: 查询天气\n---\n", Ok(("天气", "查询天气"))),
    ("react", "---\nname: React 最佳实践\ndescription: 规范\n---\n", Ok(("react", "规范"))),
    ("no-name", "---\ndescription: A\n---\n", Ok(("no-name", "A"))),
    ("other", "---\nname: another\ndescription: A\n---\n", Ok(("another", "A"))),
    ("Upper", "---\nname: Upper\ndescription: A\n---\n", Ok(("Upper", "A"))),
    ("csv", "---\nname: csv\ndescription: A\nallowed-tools: Bash(git add:*), Read\n---\n", Ok(("csv", "A"))),
    ("list", "---\nname: list\ndescription: A\nallowed-tools: [Read, Write]\n---\n", Ok(("list", "A"))),
    ("dashes", "---\nname: dashes\ndescription: A\nallowed-tools:\n  - Read\n  - Bash(ls)\n---\n", Ok(("dashes", "A"))),
    ("hint", "---\nname: hint\ndescription: A\nargument-hint: [issue] [priority]\n---\n", Ok(("hint", "A"))),
    ("yes", "---\nname: yes-skill\ndescription: yes\n---\n", Ok(("yes-skill", "yes"))),
    ("number", "---\nname: 123\ndescription: 4.50\n---\n", Ok(("123", "4.50"))),
    ("stars", "---\nname: stars\ndescription: **Bold** words\n---\n", Ok(("stars", "**Bold** words"))),
    ("at", "---\nname: at\ndescription: @team does it\n---\n", Ok(("at", "@team does it"))),
    ("json", "---\n{\"name\": \"json\", \"description\": \"A\"}\n---\n", Ok(("json", "A"))),
    ("dots", "---\nname: my.skill\ndescription: A\n---\n", Ok(("my.skill", "A"))),
    ("all", "---\nname: all\ndescription: A\n---\n", Ok(("all", "A"))),
    ("spaces", "---  \nname:   spaces  \ndescription:   A  b  \n---\t\n", Ok(("spaces", "A b"))),
    ("anchor", "---\nname: &n anchor\ndescription: *n\n---\n", Ok(("anchor", "anchor"))),
    ("head-only", "---\nname: head-only\ndescription: A\n---", Ok(("head-only", "A"))),
    ("none", "# Just a text\n", Err("no front matter")),
    ("mute", "---\nname: mute\n---\n", Err("no `description`")),
    ("empty", "---\nname: empty\ndescription:\n---\n", Err("no `description`")),
    ("twice", "---\nname: twice\ndescription: A\ndescription: B\n---\n", Err("written twice")),
];

#[test]
fn real_files_load_and_broken_ones_say_why() {
    for (called, text, want) in FILES {
        let read = read(text.as_bytes(), Path::new("SKILL.md"), called, Scope::User);
        match (read, want) {
            (Ok(skill), Ok((name, description))) => {
                assert_eq!((skill.name.as_str(), skill.description.as_str()), (name, description), "{called}");
            }
            (Err(why), Err(want)) => assert!(why.contains(want), "{called}: {why}"),
            (read, want) => panic!("{called}: {read:?}, not {want:?}"),
        }
    }
}

fn skill(head: &str) -> Skill {
    let text = format!("---\nname: x\ndescription: A\n{head}\n---\nbody");
    read(text.as_bytes(), Path::new("SKILL.md"), "x", Scope::User).unwrap_or_else(|why| panic!("{head}: {why}"))
}

#[test]
fn keys_of_all_families_are_read() {
    let head = skill(
        "allowed-tools: Bash(git add:*), Bash(git commit -m:*) Read\ndisallowedTools: [Write]\n\
        argument-hint: [issue] [priority]\narguments: issue, priority\nuser-invocable: no",
    )
    .head;
    assert_eq!(head.tools, ["Bash(git add:*)", "Bash(git commit -m:*)", "Read"]);
    assert_eq!((head.without_tools, head.arguments), (vec!["Write".into()], vec!["issue".into(), "priority".into()]));
    assert_eq!(
        (head.argument_hint.as_deref(), head.for_users, head.for_models),
        (Some("[issue] [priority]"), false, true)
    );

    for metadata in [
        "metadata:\n  openclaw:\n    requires: {bins: [uv], env: [K]}\n    os: [darwin]\n    always: false",
        "metadata: {\"openclaw\": {\"requires\": {\"bins\": [\"uv\"], \"env\": [\"K\"],}, \"os\": [\"darwin\"]}}",
        "metadata:\n  clawdbot: '{requires: {bins: [uv], env: [K]}, os: darwin}'",
        "requires:\n  bins: uv\n  env: K\nos: darwin",
    ] {
        let needs = skill(metadata).head.needs;
        let want =
            Needs { bins: vec!["uv".into()], env: vec!["K".into()], os: vec!["darwin".into()], ..Needs::default() };
        assert_eq!(needs, want, "{metadata}");
    }
}

#[test]
fn a_fork_says_who_and_how() {
    let fork = |agent: &str, model: Option<&str>, effort| {
        Some(Fork { agent: agent.into(), model: model.map(str::to_owned), effort })
    };
    for (head, want, warnings) in [
        ("context: fork", fork("general", None, None), 0),
        ("context: Fork\nagent: Explore\nmodel: inherit\neffort: HIGH", fork("explore", None, Some(Effort::High)), 0),
        (
            "context: fork\nagent: general-purpose\nmodel: haiku\neffort: 2000",
            fork("general", Some("haiku"), Some(Effort::Tokens(2_000))),
            0,
        ),
        ("context: fork\neffort: much", fork("general", None, None), 1),
        ("context: inline\nagent: explore", None, 1),
        ("agent: explore", None, 0),
    ] {
        let skill = skill(head);
        assert_eq!((skill.head.fork, skill.warnings.len()), (want, warnings), "{head}: {:?}", skill.warnings);
    }
    let globs = |head: &str| skill(head).head.paths;
    assert_eq!(globs("paths: 'src/**/*.{ts,tsx}, docs/**'"), ["src/**/*.{ts,tsx}", "docs/**"]);
    assert_eq!(globs("paths: [src/**, '*.md']"), ["src/**", "*.md"]);
}

#[test]
fn unknown_and_unused_keys_are_said() {
    let odd = skill("descriptoin: B\ncontext: fork\nmodel: opus\nhooks: {}\nuser-invocable: perhaps");
    assert_eq!(odd.head.idle, ["hooks"]);
    let words = odd.warnings.join("\n");
    assert!(words.contains("line 4: `descriptoin` is no key of a skill, did you mean `description`?"), "{words}");
    assert!(words.contains("`user-invocable` must be `true` or `false`"), "{words}");
}

fn place(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let file = home.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let root = home.path().canonicalize().unwrap();
    (home, root)
}

const TEXT: &str = "---\ndescription: A\n---\nbody";

#[test]
fn places_have_an_order_and_a_depth() {
    let (_home, root) = place(&[
        (".git/HEAD", ""),
        ("skills/a/SKILL.md", TEXT),
        ("skills/flat.md", TEXT),
        ("skills/notes.md", "# no skill"),
        ("skills/settings.yaml", "x: 1"),
        (".max-team/skills/b/SKILL.md", TEXT),
        (".agents/skills/group/c/SKILL.md", TEXT),
        (".claude/skills/b/SKILL.md", TEXT),
        (".claude/skills/1/2/3/d/SKILL.md", TEXT),
        (".claude/skills/1/2/3/4/5/deep/SKILL.md", TEXT),
        (".claude/skills/node_modules/e/SKILL.md", TEXT),
        ("sub/.claude/skills/a/SKILL.md", TEXT),
        ("mine/a/SKILL.md", TEXT),
        ("mine/f/SKILL.md", TEXT),
    ]);
    let places = Places { project: true, user: vec![root.join("mine")], ..Places::default() };
    let catalogue = Catalogue::read(&places, &root.join("sub"));
    let found: Vec<(&str, String)> = catalogue
        .all()
        .map(|skill| (skill.name.as_str(), skill.file.strip_prefix(&root).unwrap().display().to_string()))
        .collect();
    let want = [
        ("a", "mine/a/SKILL.md"),
        ("b", ".max-team/skills/b/SKILL.md"),
        ("c", ".agents/skills/group/c/SKILL.md"),
        ("d", ".claude/skills/1/2/3/d/SKILL.md"),
        ("f", "mine/f/SKILL.md"),
        ("flat", "skills/flat.md"),
    ];
    assert_eq!(found, want.map(|(name, file)| (name, file.to_owned())), "nobody trusts the project yet");
    assert!(catalogue.get("flat").unwrap().warnings.iter().any(|words| words.contains("flat/SKILL.md")));

    let trusts = Trust::new({
        let file = root.join("sub/.claude/skills/a");
        move |_: &Path| vec![Trust::word("a", &Pin::of(&file).unwrap())]
    });
    let catalogue = Catalogue::read(&Places { trust: trusts, ..places }, &root.join("sub"));
    assert!(catalogue.get("a").unwrap().file.ends_with("sub/.claude/skills/a/SKILL.md"), "the nearest wins");
    let lost: Vec<&str> = catalogue.shadows.iter().map(|shadow| shadow.name.as_str()).collect();
    assert_eq!(lost, ["a", "b", "a"]);
}

/// A file whose time and size are those of another one is known by what it was. It is loaded as what it is.
#[test]
fn loaded_skills_are_those_the_user_trusts() {
    let file = |tool: &str| {
        format!("name: count\ndescription: A\nprompt: {tool}\ntools: [{tool}]\noutput: {{type: object}}\n")
    };
    let (_home, root) = place(&[(".git/HEAD", ""), (".claude/skills/count/skill.yaml", &file("edit_file"))]);
    let (path, index) = (root.join(".claude/skills/count/skill.yaml"), root.join("index.json"));
    let time = path.metadata().unwrap().modified().unwrap();
    let trusts = Trust::new({
        let folder = path.parent().unwrap().to_path_buf();
        move |_: &Path| vec![Trust::word("count", &Pin::of(&folder).unwrap())]
    });
    let places = Places { project: true, trust: trusts, index: Some(index), ..Places::default() };
    drop(Catalogue::read(&places, &root));
    std::fs::write(&path, file("read_file")).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    let catalogue = Catalogue::read(&places, &root);
    let known = catalogue.get("count").unwrap();
    assert_eq!(known.contract.as_ref().unwrap().tools, ["edit_file"], "the catalogue goes by time and size");
    let contract = catalogue.load(known).unwrap().0.contract.unwrap();
    assert_eq!((contract.prompt.as_str(), contract.tools), ("read_file", vec!["read_file".to_owned()]));
    std::fs::write(&path, file("read_file").replace("name: count", "name: other")).unwrap();
    assert_eq!(catalogue.load(known).unwrap_err(), "it is called `other` now");
}

#[test]
fn a_definition_brings_whole_texts_along() {
    let (_home, root) = place(&[
        ("mine/a/SKILL.md", "---\ndescription: A\n---\nDo !`ls` in ${CLAUDE_PROJECT_DIR}."),
        ("mine/b/SKILL.md", "---\ndescription: B\nrequires: {bins: [no-such-program]}\n---\nhidden"),
    ]);
    let catalogue = Catalogue::read(&Places { user: vec![root.join("mine")], ..Places::default() }, &root);
    let names = ["a", "b", "c"].map(str::to_owned);
    let text = preload(&names, &catalogue, &SkillContext { root: Path::new("/p"), session: "" });
    assert!(text.contains("<skill name=\"a\">\nDo [`ls` was not run: run it yourself"), "{text}");
    assert!(text.contains(" in /p.") && text.contains("`b` cannot be used: it needs `no-such-program`"), "{text}");
    assert!(text.contains("There is no skill `c`") && !text.contains("hidden"), "{text}");
}

#[test]
fn bounds_are_said() {
    let folders: Vec<(String, &str)> =
        (0..FOLDERS_MAX + 10).map(|number| (format!("mine/{number}/x.txt"), "")).collect();
    let files: Vec<(&str, &str)> = folders.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    let (_home, root) = place(&files);
    let places = Places { user: vec![root.join("mine")], ..Places::default() };
    let catalogue = Catalogue::read(&places, &root);
    assert!(catalogue.broken[0].why.contains("more than 2000 folders"), "{:?}", catalogue.broken);
    let (_home, root) = place(&[]);
    std::fs::create_dir_all(root.join("long")).unwrap();
    std::fs::write(root.join("long/SKILL.md"), format!("{TEXT}{}", "x".repeat(FILE_BYTES_MAX))).unwrap();
    let catalogue = Catalogue::read(&Places { user: vec![root.clone()], ..Places::default() }, &root);
    let why = catalogue.text(catalogue.get("long").unwrap()).unwrap_err();
    assert!(why.contains("more than 256 KiB"), "{why}");
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_a_skill_or_none(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..600)) {
        drop(read(&bytes, Path::new("SKILL.md"), "x", Scope::Project));
        drop(contract::read(&bytes, Path::new("x.yaml"), "x", Scope::Project));
    }

    #[test]
    fn any_front_is_a_skill_or_none(head in "(name|description|metadata|requires|os|allowed-tools): \\PC{0,40}\n(\\PC{0,60}\n){0,4}") {
        let text = format!("---\n{head}---\nbody");
        if let Ok(skill) = read(text.as_bytes(), Path::new("SKILL.md"), "x", Scope::Project) {
            proptest::prop_assert!(!skill.description.is_empty() && !skill.name.is_empty());
        }
    }
}
