//! What is wrong is named, with its place; what is not ours is left alone.

use super::*;
use crate::i18n::Lang;

#[test]
fn unknown_keys_warn_with_a_guess() {
    let text = "llm:\n  modle: x\nserver:\n  timeout: 3\nlmm: {a: 1}\nzzz: 1\nllm.timeout: 5\nui:\n";
    let expected = [
        "/user/.max-team/config.yaml:2:3: unknown key `llm.modle`, did you mean `llm.default_model`?",
        "/user/.max-team/config.yaml:4:3: unknown key `server.timeout`, did you mean `llm.timeout`?",
        "/user/.max-team/config.yaml:5:1: unknown key `lmm`, did you mean `llm`?",
        "/user/.max-team/config.yaml:6:1: unknown key `zzz`; `max-team config explain` lists every key",
        "/user/.max-team/config.yaml:7:1: unknown key `llm.timeout`; write `timeout:` inside `llm:`",
    ];
    assert_eq!(Place::new().user(text).warnings(), expected);

    let many: String = (0..50).map(|number| format!("k{number}: 1\n")).collect();
    let warnings = Place::new().user(&many).warnings();
    assert_eq!(warnings.len(), 21);
    assert_eq!(warnings[20], "30 more warnings are not shown");
}

#[test]
fn wrong_values_are_all_named() {
    let text = "server: {port: 99999}\nllm:\n  timeout: soon\n  max_retries: [1]\nui: x\nlimits: {rounds:}\n";
    let expected = [
        "/user/.max-team/config.yaml:1:16: `server.port`: expected a port from 0 to 65535, found `99999`",
        "/user/.max-team/config.yaml:3:12: `llm.timeout`: expected a duration up to 24h such as `500ms`, `120s`, `2m` or \
         `1h`, found `soon`",
        "/user/.max-team/config.yaml:4:16: `llm.max_retries`: expected a whole number from 0 to 20, found a list",
        "/user/.max-team/config.yaml:5:5: `ui`: expected a map of settings, found `x`",
        "/user/.max-team/config.yaml:6:16: `limits.rounds`: expected a whole number from 1 to 1000, found nothing",
    ];
    let place = Place::new().user(text).project("llm: {timeout: 5s}\n");
    assert_eq!(place.problems(), expected, "a hidden value is checked too");
    let error = place.load().unwrap_err().to_string();
    assert!(error.ends_with("\ncorrect the value, or delete the line if there is a default"), "{error}");
}

#[test]
fn broken_files_are_named() {
    let problem = |text: &[u8]| Place::new().file("user/.max-team/config.yaml", text).problems();
    let path = "/user/.max-team/config.yaml";
    assert_eq!(problem(b"llm:\n  a: [\n"), [format!("{path}:2:6: unclosed bracket '['")]);
    assert_eq!(problem(b"ui: {}\nui: {}\n"), [format!("{path}:2:1: the key `ui` is written twice")]);
    let second = format!("{path}:3:1: a second document begins here, but only one is allowed");
    assert_eq!(problem(b"ui: {}\n---\nllm: {}\n"), [second]);
    assert_eq!(problem(b"ui:\n  # \xff\n"), [format!("{path}:2: not valid UTF-8")]);
    assert_eq!(problem(&vec![b'#'; (1 << 20) + 1]), [format!("{path}: larger than 1024 KiB")]);
    assert_eq!(problem(b"- a\n"), [format!("{path}:1:1: `the file`: expected a map of settings, found a list")]);
    for harmless in [&b""[..], b"# nothing\n", b"null\n", b"llm:\n", b"\xef\xbb\xbfui: {}\r\n"] {
        let place = Place::new().file("user/.max-team/config.yaml", harmless);
        assert_eq!(place.warnings(), [""; 0], "{harmless:?}");
    }
    let folder = Place::new().file("user/.max-team/config.yaml/x", "");
    assert!(folder.problems()[0].starts_with(&format!("{path}: cannot be read: ")));
}

#[test]
fn other_programs_files_are_left_alone() {
    let foreign: [&[u8]; 6] = [
        b"server: {port: 99999}\nspring: {a: 1}\n",
        b"{{ template }}\n  x: [\n",
        b"a: 1\n---\nb: 2\n",
        b"\xff\xfe",
        b"llm: {provider: x, model: gpt, temperature: 0, timeout: {connect: 5}}\n",
        &[b'#'; (1 << 20) + 1],
    ];
    for text in foreign {
        for name in ["config.yaml", "config/config.yaml"] {
            let config = Place::new().file(&format!("project/{name}"), text).load().unwrap();
            assert_eq!(config.warnings, [""; 0]);
            let note = format!("left alone:\n  {name}: it belongs to another program\n");
            assert!(config.explain(None, Lang::En).unwrap().ends_with(&note), "{:?}", String::from_utf8_lossy(text));
        }
    }
    let slip = Place::new().file("project/config.yaml", "llm:\n  provider: [\n");
    assert_eq!(slip.problems(), ["config.yaml:2:13: unclosed bracket '['"], "a slip in our own file is not hidden");
}
