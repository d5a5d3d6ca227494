//! The reader of command lines: what is plain, what is not and why, and that nothing gets lost in between.

use max_team_core::limits::{COMMAND_BYTES_MAX, COMMAND_PARTS_MAX};
use max_team_core::policy::command_line::{CommandLine, Operator, Redirect, RedirectTarget, SimpleCommand};
use max_team_tools::shell::{self, parse_line};
use proptest::prelude::*;

fn parts(text: &str) -> Vec<SimpleCommand> {
    match parse_line(text) {
        CommandLine::Plain(parts) => parts,
        opaque => panic!("{text}: {opaque:?}"),
    }
}

fn argv(text: &str) -> Vec<String> {
    parts(text).pop().unwrap().argv
}

fn why(text: &str) -> String {
    match parse_line(text) {
        CommandLine::Opaque { why, text: kept } => {
            assert_eq!(kept, text);
            why.to_string()
        }
        plain => panic!("{text}: {plain:?}"),
    }
}

#[test]
fn words_come_out_as_a_program_gets_them() {
    let table: [(&str, &[&str]); 15] = [
        ("cargo test", &["cargo", "test"]),
        ("  a \t b  ", &["a", "b"]),
        ("a 'b c' \"d e\"", &["a", "b c", "d e"]),
        ("a '' \"\"", &["a", "", ""]),
        ("a\\ b c", &["a b", "c"]),
        ("a'b'\"c\"\\d", &["abcd"]),
        ("a 'it'\\''s'", &["a", "it's"]),
        (r#"a "\$x \` \" \\ \n""#, &["a", "$x ` \" \\ \\n"]),
        ("a '$x;|&*' \\*", &["a", "$x;|&*", "*"]),
        ("git show HEAD~1 @ a^b", &["git", "show", "HEAD~1", "@", "a^b"]),
        ("find . ! -name x", &["find", ".", "!", "-name", "x"]),
        ("find . -exec rm {} \\;", &["find", ".", "-exec", "rm", "{}", ";"]),
        ("a 'l1\nl2' \"m1\nm2\"", &["a", "l1\nl2", "m1\nm2"]),
        ("a 1 -1 0x1 é 中文", &["a", "1", "-1", "0x1", "é", "中文"]),
        ("a b=c --d='e f'", &["a", "b=c", "--d=e f"]),
    ];
    for (text, want) in table {
        assert_eq!(argv(text), want, "{text}");
    }
}

#[test]
fn lines_comments_and_tests_are_read() {
    let all = |text: &str| parts(text).into_iter().map(|part| (part.join, part.argv.join(" "))).collect::<Vec<_>>();
    let want =
        |list: &[(Operator, &str)]| list.iter().map(|(join, words)| (*join, (*words).to_owned())).collect::<Vec<_>>();
    for (text, list) in [
        ("a \\\n  b", &[(Operator::Then, "a b")][..]),
        ("a\\\n b", &[(Operator::Then, "a b")]),
        ("a \"b\\\nc\"", &[(Operator::Then, "a bc")]),
        ("a\nb", &[(Operator::Then, "a"), (Operator::Then, "b")]),
        ("a\n\n# words\nb # more\n", &[(Operator::Then, "a"), (Operator::Then, "b")]),
        ("a &&\n  b |\n c", &[(Operator::Then, "a"), (Operator::And, "b"), (Operator::Pipe, "c")]),
        ("a &&\\\n b", &[(Operator::Then, "a"), (Operator::And, "b")]),
        ("a;\nb", &[(Operator::Then, "a"), (Operator::Then, "b")]),
        ("a b#c", &[(Operator::Then, "a b#c")]),
        ("[ -f a ] && b", &[(Operator::Then, "[ -f a ]"), (Operator::And, "b")]),
        ("[ \"x\" = y ]", &[(Operator::Then, "[ x = y ]")]),
    ] {
        assert_eq!(all(text), want(list), "{text:?}");
    }
}

#[test]
fn patterns_stand_for_the_names_that_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("src/deep")).unwrap();
    for file in ["src/a.rs", "src/b.rs", "src/c.txt", "src/.hidden.rs", "src/deep/d.rs", "x y.rs", "[z].md"] {
        std::fs::write(root.join(file), "").unwrap();
    }
    std::os::unix::fs::symlink("/etc", root.join("out")).unwrap();
    let words = |line: &str| match shell::action(line, &root).line {
        Some(CommandLine::Plain(parts)) => parts.iter().map(|part| part.argv.join("|")).collect::<Vec<_>>().join(" & "),
        _ => "asked".to_owned(),
    };
    for (line, want) in [
        ("wc -l src/*.rs", "wc|-l|src/a.rs|src/b.rs"),
        ("wc src/?.txt src/[ab].rs", "wc|src/c.txt|src/a.rs|src/b.rs"),
        ("cat s*/d*/*.rs", "cat|src/deep/d.rs"),
        ("cat *.rs", "cat|x y.rs"),
        ("cat src/.h*", "cat|src/.hidden.rs"),
        ("cat '['*.md", "cat|[z].md"),
        ("cat none/*.rs", "cat|none/*.rs"),
        ("cat '*.rs'", "cat|*.rs"),
        ("cd src && cat *.txt", "cd|src & cat|c.txt"),
        ("grep -n x src/*.rs | head", "grep|-n|x|src/a.rs|src/b.rs & head"),
        ("git add src/*.txt", "git|add|src/c.txt"),
        // A shell would look after the first command has run.
        ("touch src/e.rs && ls src/*.rs", "asked"),
        ("cargo build && ls src/*", "asked"),
        ("cd src; cat *.txt", "asked"),
        // What is changed or deleted is named, and what is looked at stays in the project.
        ("rm src/*.rs", "asked"),
        ("sed -i s/a/b/ src/*.rs", "asked"),
        ("echo *", "asked"),
        ("cat out/*", "asked"),
        ("cat ../*", "asked"),
        ("cat /etc/*", "asked"),
    ] {
        assert_eq!(words(line), want, "{line}");
    }
}

#[test]
fn joins_redirections_and_variables() {
    let joins: Vec<Operator> = parts("a && b || c ; d | e").into_iter().map(|part| part.join).collect();
    assert_eq!(joins, [Operator::Then, Operator::And, Operator::Or, Operator::Then, Operator::Pipe]);
    assert_eq!(parts("a;").len(), 1);
    let part = |text: &str| parts(text).pop().unwrap();
    let flow = |fd, to| Redirect { fd, to };
    assert_eq!(part("a >x").flows, [flow(1, RedirectTarget::Write("x".into()))]);
    assert_eq!(
        part("a >> 'x y' 2>&1").flows,
        [flow(1, RedirectTarget::Append("x y".into())), flow(2, RedirectTarget::Same(1))]
    );
    assert_eq!(
        part("a <x 2>/dev/null").flows,
        [flow(0, RedirectTarget::Read("x".into())), flow(2, RedirectTarget::Write("/dev/null".into()))]
    );
    assert_eq!(part("a &>x").flows, [flow(1, RedirectTarget::Write("x".into())), flow(2, RedirectTarget::Same(1))]);
    // What follows the file belongs to the command again, whatever a grammar makes of it.
    assert_eq!(
        (part("a > x y z").argv, part("> x a y").argv),
        (vec!["a".into(), "y".into(), "z".into()], vec!["a".into(), "y".into()])
    );
    // A redirection belongs to the last command of what stands before it.
    let both = parts("a && b > x");
    assert!(both[0].flows.is_empty() && both[1].flows.len() == 1);
    let piped = parts("a | b 2>&1 | c");
    assert_eq!(piped.iter().map(|part| part.flows.len()).collect::<Vec<_>>(), [0, 1, 0]);
    assert_eq!(
        part("A=1 B='x y' C= cmd").env,
        [("A".into(), "1".into()), ("B".into(), "x y".into()), ("C".into(), String::new())]
    );
}

#[test]
fn unsupported_syntax_is_named() {
    let table = [
        ("", "there is nothing in it"),
        (" \n", "there is nothing in it"),
        ("a \0", "a zero byte"),
        ("a $x", "a variable or an expansion (`$`)"),
        ("a \"$x\"", "a variable or an expansion (`$`)"),
        ("a $(b)", "a command inside a word"),
        ("a `b`", "a command inside a word"),
        ("a <(b)", "a command in place of a file"),
        ("a *.rs", "a pattern of file names"),
        ("a [ab]", "a pattern of file names"),
        ("*.sh", "a pattern of file names"),
        ("a > *.rs", "a pattern of file names"),
        ("a ~/x", "a home folder (`~`)"),
        ("A=~/x b", "a home folder (`~`)"),
        ("a {b,c}", "braces"),
        ("a &", "a command in the background (`&`)"),
        ("a |& b", "a pipe of both outputs (`|&`)"),
        ("a\\\nb c", "a line that goes on inside a word"),
        ("(a)", "commands in brackets"),
        ("{ a; }", "commands in brackets"),
        ("! a", "a negated command (`!`)"),
        ("[[ -f a ]]", "a test of bash's own (`[[`)"),
        ("if a; then b; fi", "a control structure"),
        ("for a in b; do c; done", "a control structure"),
        ("f() { a; }", "a function"),
        ("a <<< b", "text in place of a file (`<<`)"),
        ("a $'b'", "a quote of bash's own (`$'…'`)"),
        ("x=1", "a part without a command"),
        ("export A=1", "variables of the shell"),
        ("a 'b", "it cannot be parsed"),
        ("a ||", "it cannot be parsed"),
        ("> x", "a part without a command"),
        ("a >&-", "something that is not a plain word (`>&-`)"),
        ("a <&3", "something that is not a plain word (`<&`)"),
        ("a\rb", "a control character or an odd space"),
        ("a\u{b}b", "a control character or an odd space"),
        ("a\u{a0}b", "a control character or an odd space"),
        ("a {\u{1f600}..3}", "braces"),
    ];
    for (text, want) in table {
        assert_eq!(why(text), want, "{text:?}");
    }
    assert_eq!(why(&"a".repeat(COMMAND_BYTES_MAX + 1)), format!("it is longer than {COMMAND_BYTES_MAX} bytes"));
    let many = vec!["a"; COMMAND_PARTS_MAX + 1].join(";");
    assert_eq!(why(&many), format!("more than {COMMAND_PARTS_MAX} commands"));
    for join in [" && ", "|", ";"] {
        assert_eq!(parts(&vec!["a"; COMMAND_PARTS_MAX].join(join)).len(), COMMAND_PARTS_MAX);
        why(&vec!["a"; 3_000].join(join));
    }
}

#[test]
fn links_are_told_with_both_ends() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("a")).unwrap();
    std::os::unix::fs::symlink("/etc", root.join("a/out")).unwrap();
    std::os::unix::fs::symlink("../gone", root.join("a/nowhere")).unwrap();
    let links = |line: &str| {
        let own = |path: &str| path.replace(&root.display().to_string(), "");
        let links = shell::action(line, &root).links;
        links.iter().map(|(path, real)| (own(path), own(real))).collect::<Vec<_>>()
    };
    let one = |path: &str, real: &str| vec![(path.to_owned(), real.to_owned())];
    assert_eq!(links("cat a/b README"), []);
    assert_eq!(links("cat a/out/passwd"), one("/a/out/passwd", "/etc/passwd"));
    assert_eq!(links("cat < a/out/passwd"), one("/a/out/passwd", "/etc/passwd"));
    assert_eq!(links("cat a/out/../x"), one("/a/x", "/x"));
    assert_eq!(links("cd a && cat out/passwd").last(), one("/a/out/passwd", "/etc/passwd").last());
    assert_eq!(links("cp README a/nowhere"), one("/a/nowhere", "/gone"));
    assert_eq!(links("timeout 5 cat a/out/new"), one("/a/out/new", "/etc/new"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>(), odd in "[ab1 '\"\\\\$;=~#\n<>|&(){}*`!-]{0,40}") {
        let _ = (parse_line(&text), shell::action(&odd, "/nowhere".as_ref()));
    }

    /// What is plain is the same line again when it is written down and read once more.
    #[test]
    fn a_plain_line_written_down_is_itself(odd in "[ab1 '\"\\\\;=~#<>|&{}!.-]{0,40}") {
        let line = parse_line(&odd);
        if let CommandLine::Plain(_) = line {
            prop_assert_eq!(parse_line(&line.to_string()), line);
        }
    }

    /// A program whose name would be an assignment is written as a name.
    #[test]
    fn a_program_is_never_an_assignment(name in "-?[a1]{0,3}=[b2]{0,3}") {
        let plain = CommandLine::single(&[name, "b=c".to_owned()]);
        prop_assert_eq!(parse_line(&plain.to_string()), plain);
    }

    /// Any words, written down, are read as they are; the grammar may stumble, but it never makes other words of them.
    #[test]
    fn no_words_are_misread(
        words in prop::collection::vec("[^\0]{0,12}", 1..6),
        value in "[^\0]{0,8}",
        path in "[^\0]{1,8}",
        join in 0..4,
    ) {
        let words: Vec<String> = std::iter::once("cmd".to_owned()).chain(words).collect();
        let plain = CommandLine::single(&words);
        prop_assert_eq!(parse_line(&plain.to_string()), plain);
        let join = [Operator::Then, Operator::And, Operator::Or, Operator::Pipe][usize::try_from(join).unwrap()];
        let env = vec![("A".to_owned(), value)];
        let flows = vec![Redirect { fd: 1, to: RedirectTarget::Write(path) }, Redirect { fd: 2, to: RedirectTarget::Same(1) }];
        let one = SimpleCommand { join: Operator::Then, env, argv: words.clone(), flows };
        let line = CommandLine::Plain(vec![one.clone(), SimpleCommand { join, ..one }]);
        let text = line.to_string();
        match parse_line(&text) {
            CommandLine::Opaque { why, .. } => prop_assert_eq!(why.to_string(), "it cannot be parsed"),
            plain => prop_assert_eq!(plain, line),
        }
    }
}
