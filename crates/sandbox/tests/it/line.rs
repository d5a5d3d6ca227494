//! Lines of several commands: joined as a shell joins them, without one, by every engine and without a sandbox.

use std::fs;

use max_team_sandbox::{EndReason, Engine, Limit, Limits, Operator, PipelineStep, Redirect, RedirectTarget, Spec};

use crate::{World, engines, ran};

/// Words joined by signs, as a test writes them: nothing here is quoted.
fn line(text: &str) -> Vec<PipelineStep> {
    let mut steps = vec![PipelineStep::default()];
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        let mut to = || words.next().unwrap().to_owned();
        let flow = match word {
            "<" => Some(Redirect { fd: 0, to: RedirectTarget::Read(to()) }),
            ">" => Some(Redirect { fd: 1, to: RedirectTarget::Write(to()) }),
            ">>" => Some(Redirect { fd: 1, to: RedirectTarget::Append(to()) }),
            "2>" => Some(Redirect { fd: 2, to: RedirectTarget::Write(to()) }),
            "2>&1" => Some(Redirect { fd: 2, to: RedirectTarget::Same(1) }),
            _ => None,
        };
        let join = match word {
            ";" => Some(Operator::Then),
            "&&" => Some(Operator::And),
            "||" => Some(Operator::Or),
            "|" => Some(Operator::Pipe),
            _ => None,
        };
        let step = steps.last_mut().unwrap();
        match (flow, join) {
            (Some(flow), _) => step.flows.push(flow),
            (_, Some(join)) => steps.push(PipelineStep { join, ..PipelineStep::default() }),
            _ if step.argv.is_empty() && word.contains('=') => {
                let (name, value) = word.split_once('=').unwrap();
                step.env.push((name.to_owned(), value.to_owned()));
            }
            _ => step.argv.push(word.to_owned()),
        }
    }
    steps
}

fn spec(world: &World, engine: Engine, text: &str) -> Spec {
    let isolation = (engine != Engine::Bare).then(|| world.isolation());
    Spec { argv: vec!["a line".to_owned()], line: line(text), isolation, ..world.spec("") }
}

fn all() -> Vec<Engine> {
    let mut all = engines();
    all.push(Engine::Bare);
    all
}

#[test]
fn commands_are_joined_as_a_shell_joins_them() {
    // What is written, what comes out, what it exits with.
    let table = [
        ("echo a ; echo b", "a\nb\n", 0),
        ("false ; echo b", "b\n", 0),
        ("echo a && false && echo b", "a\n", 1),
        ("false || echo b", "b\n", 0),
        ("true || echo b && echo c", "c\n", 0),
        ("false && echo b || echo c", "c\n", 0),
        ("echo a b | tr a-z A-Z", "A B\n", 0),
        ("printf c\\nb\\na\\n | sort | head -n 1", "a\n", 0),
        ("false | true", "", 0),
        ("true | false", "", 1),
        ("yes | head -n 1", "y\n", 0),
        ("echo a | true ; echo b", "b\n", 0),
        ("echo one > out ; echo two >> out ; cat < out", "one\ntwo\n", 0),
        ("echo x > out ; echo y > out ; cat out", "y\n", 0),
        ("ls nothing 2> err || wc -l < err", "1\n", 0),
        ("ls nothing 2>&1 | wc -l", "1\n", 0),
        ("ls nothing 2>&1 > out | wc -l", "1\n", 0),
        ("ls nothing > out 2>&1 | wc -l", "0\n", 0),
        ("echo a > /dev/null", "", 0),
        ("echo a > /dev/stderr", "a\n", 0),
        ("cat", "", 0),
        ("A=1 env | grep ^A=", "A=1\n", 0),
        ("A=1 true ; env | grep ^A=", "", 1),
        ("mkdir -p d/e && cd d && cd e && touch f && cd .. && ls e", "f\n", 0),
        ("mkdir -p g ; cd g | true ; ls g", "", 0),
        ("cd nowhere || echo no 2>&1", "cd: nowhere: No such file or directory (os error 2)\nno\n", 0),
        ("cd ; echo on", "cd: takes one path here, and no options\non\n", 0),
        ("cd - && echo on", "cd: takes one path here, and no options\n", 1),
        ("cd file", "cd: file: not a folder\n", 1),
        ("./none", "./none: not found\n", 127),
        ("export A", "export: there is no such program (and no shell, so no words of a shell either)\n", 127),
        ("export A 2> /dev/null || echo no", "no\n", 0),
        ("./file", "./file: Permission denied (os error 13)\n", 126),
        ("cat < nothing", "nothing: No such file or directory (os error 2)\n", 1),
        ("echo $HOME * ~ `id`", "$HOME * ~ `id`\n", 0),
    ];
    for engine in all() {
        let world = World::new();
        for (text, want, code) in table {
            let (over, output) = ran(engine, &spec(&world, engine, text)).unwrap();
            assert_eq!((output.as_str(), over.code), (want, Some(code)), "{engine:?} {text}");
        }
    }
}

#[test]
fn nothing_is_written_through_a_link() {
    for engine in all() {
        let world = World::new();
        let own = &world.own;
        fs::create_dir(own.join("d")).unwrap();
        for (text, kept) in
            [("ln -s ../file d/x && echo new > d/x", "file"), ("ln -s . l && echo new >> l/file", "file")]
        {
            let (over, output) = ran(engine, &spec(&world, engine, text)).unwrap();
            assert_eq!(over.code, Some(1), "{engine:?} {text} {output}");
            assert!(output.contains("a link stands there or on the way"), "{output}");
            assert_eq!(fs::read_to_string(own.join(kept)).unwrap(), "mine\n");
        }
        let (over, _) = ran(engine, &spec(&world, engine, "echo new > d/../file && echo x > ../../other/x")).unwrap();
        assert_eq!(fs::read_to_string(own.join("file")).unwrap(), "new\n");
        let is_out = world.other.join("x").exists();
        assert_eq!((over.code == Some(0), is_out), (engine == Engine::Bare, engine == Engine::Bare), "{engine:?}");
    }
}

#[test]
fn a_line_ends_as_its_last_command_does() {
    for engine in all() {
        let world = World::new();
        let script = |name: &str, text: &str| {
            let path = world.own.join(name);
            fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            path
        };
        script("hit", "kill -9 $$");
        script("odd", "exit 137");
        let run = |text: &str, limits: Limits| ran(engine, &Spec { limits, ..spec(&world, engine, text) }).unwrap();
        let (over, _) = run("echo a ; sh hit", Limits::default());
        assert_eq!((over.code, over.signal, over.ended), (None, Some(9), EndReason::Exited), "{engine:?}");
        let (over, _) = run("sh odd ; sh odd", Limits::default());
        assert_eq!((over.code, over.signal), (Some(137), None), "{engine:?}");
        let (over, output) = run("sh hit || echo b", Limits::default());
        assert_eq!((over.code, output.as_str()), (Some(0), "b\n"), "{engine:?}");

        let short = Limits { time: std::time::Duration::from_millis(300), ..Limits::default() };
        let (over, _) = run("sleep 1000 | sleep 1000 ; echo b", short);
        assert_eq!(over.ended, EndReason::TimedOut, "{engine:?}");
        let small = Limits { file_bytes: 1 << 16, ..Limits::default() };
        let (over, _) = run("true ; head -c 1000000 /dev/zero > big", small);
        assert_eq!(over.ended, EndReason::Limit(Limit::FileBytes), "{engine:?}");
    }
}
