//! Reading: ranges, large files, pictures, and what is no text.

use std::fs::File;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use max_team_core::chat::Part;
use max_team_core::limits::{IMAGE_BYTES_MAX, READ_BYTES_MAX, TOOL_RESULT_BYTES_MAX};
use max_team_core::policy::ActionKind;
use max_team_tools::{Output, ToolError};
use serde_json::json;

use crate::project::Project;

#[test]
fn ranges_say_how_to_read_on() {
    let project = Project::new();
    let numbers: String = (1..=5_321).map(|n| format!("{n}\n")).collect();
    project.write("n", &numbers);
    project.write("short", "a\nb");
    project.write("empty", "");
    project.write("dos", "a\r\nb\r\n");
    project.write("mixed", "one\n two\r\n three\rthree-b\n four");
    project.write("cr", "one\rtwo\rthree");
    project.write("bom", "\u{feff}a\n");
    let wide: String = format!("{}\n", "w".repeat(1_000)).repeat(500);
    project.write("wide", &wide);
    let table = [
        (json!({ "path": "short" }), "1\ta\n", "2\tb\n"),
        (json!({ "path": "short", "offset": null, "limit": null }), "1\ta\n", "2\tb\n"),
        (json!({ "path": "empty" }), "[`empty` is empty]", "[`empty` is empty]"),
        (json!({ "path": "dos" }), "1\ta\n2\tb\n", "[lines end in CR LF]"),
        (json!({ "path": "mixed" }), "1\tone\n2\t two\n", "[mixed line ends; CR alone ends no line]"),
        (json!({ "path": "cr" }), "1\tone\r", "[CR alone ends no line]"),
        (json!({ "path": "bom" }), "1\ta\n", "1\ta\n"),
        (json!({ "path": "n" }), "1\t1\n2\t2\n", "2000\t2000\n\n[lines 1-2000 of 5321; read on with offset 2001]"),
        (json!({ "path": "n", "limit": 99_999 }), "1\t1\n", "[lines 1-2000 of 5321; read on with offset 2001]"),
        (json!({ "path": "n", "offset": 5_320 }), "5320\t5320\n", "5321\t5321\n\n[lines 5320-5321 of 5321]"),
        (json!({ "path": "n", "offset": 3, "limit": 1 }), "3\t3\n", "[lines 3-3 of 5321; read on with offset 4]"),
        (json!({ "path": "wide" }), "1\tw", "[lines 1-65 of 500; read on with offset 66]"),
    ];
    for (input, start, end) in table {
        let told = project.call("read_file", input.clone()).unwrap();
        let ending = &told[told.floor_char_boundary(told.len().saturating_sub(200))..];
        assert!(told.starts_with(start) && told.ends_with(end), "{input}: {ending}");
        assert!(told.len() <= READ_BYTES_MAX + 500 && told.len() <= TOOL_RESULT_BYTES_MAX);
    }
    let err = project.refused("read_file", json!({ "path": "short", "offset": 9 }));
    assert!(err.contains("only 2 lines"), "{err}");
}

/// Bytes that this thread has read from files so far.
fn bytes_read() -> Option<u64> {
    let counts = std::fs::read_to_string("/proc/thread-self/io").ok()?;
    counts.lines().find_map(|line| line.strip_prefix("rchar: "))?.parse().ok()
}

#[test]
fn two_gigabytes_answer_at_once() {
    let project = Project::new();
    let mut file = File::create(project.inside("huge.log")).unwrap();
    let numbers: String = (1..=600_000).map(|n| format!("{n}\n")).collect();
    file.write_all(numbers.as_bytes()).unwrap();
    file.set_len(2 << 30).unwrap();

    let start = bytes_read();
    let told = project.call("read_file", json!({ "path": "huge.log" })).unwrap();
    assert!(
        told.starts_with("1\t1\n") && told.contains("2000\t2000\n\n[lines 1-2000"),
        "{}",
        &told[told.len() - 200..]
    );
    let deep = project.call("read_file", json!({ "path": "huge.log", "offset": 500_000, "limit": 1 })).unwrap();
    assert!(deep.starts_with("500000\t500000\n\n[lines 500000-500000; more follow (2.0 GiB in all)"), "{deep}");
    // What was read, rather than how long it took: a busy machine must not fail this.
    match (start, bytes_read()) {
        (Some(start), Some(end)) => assert!(end - start < 16 << 20, "{} bytes", end - start),
        _ => println!("not measured: this system does not count what a thread reads"),
    }

    let err = project.refused("read_file", json!({ "path": "huge.log", "offset": 600_001 }));
    assert!(err.contains("binary data"), "{err}");
}

#[test]
fn a_cancelled_read_stops() {
    let project = Project::new();
    File::create(project.inside("huge")).unwrap().write_all("x\n".repeat(100_000).as_bytes()).unwrap();
    let input = json!({ "path": "huge", "offset": 90_000 });
    let intent = project.action("read_file", &input).unwrap();
    project.cx.cancel.cancel();
    let told = project.run("read_file", &input, &intent, false).unwrap_err();
    assert_eq!(told, ToolError::correctable("stopped before it was done"));
}

#[test]
fn pictures_come_as_pictures() {
    let project = Project::new();
    let table: [(&str, &[u8], &str); 4] = [
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "image/png"),
        ("a.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
        ("a.gif", b"GIF89a\x01\0\x01\0", "image/gif"),
        // By what it is, not by what it is called.
        ("a.txt", b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp"),
    ];
    for (path, bytes, media_type) in table {
        project.write(path, bytes);
        let input = json!({ "path": path });
        let intent = project.action("read_file", &input).unwrap();
        let words = format!("[`{path}`: {media_type}, {} bytes]", bytes.len());
        let image = Part::Image { media_type: media_type.into(), data: STANDARD.encode(bytes) };
        let want = Output { content: vec![Part::text(words), image], is_error: false };
        assert_eq!(project.run("read_file", &input, &intent, false), Ok(want));
    }
    let mut large = b"\x89PNG\r\n\x1a\n".to_vec();
    large.resize(usize::try_from(IMAGE_BYTES_MAX).unwrap() + 1, 0);
    project.write("large.png", large);
    let err = project.refused("read_file", json!({ "path": "large.png" }));
    assert!(err.contains("at most 5.0 MiB"), "{err}");
}

#[test]
fn binary_files_are_named_and_nearly_text_is_shown() {
    let project = Project::new();
    let utf16: Vec<u8> = "\u{feff}héllo\nwörld\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    project.write("utf16", &utf16);
    assert_eq!(
        project.call("read_file", json!({ "path": "utf16" })).unwrap(),
        "1\théllo\n2\twörld\n\n[the file is UTF-16, shown decoded]"
    );
    project.write("latin", b"un caf\xe9 tr\xe8s bon\n");
    let told = project.call("read_file", json!({ "path": "latin" })).unwrap();
    assert!(told.starts_with("1\tun caf\u{fffd} tr\u{fffd}s bon\n\n[2 bytes that are not UTF-8"), "{told}");

    project.write("one", b"un caf\xe9\n");
    let told = project.call("read_file", json!({ "path": "one" })).unwrap();
    assert!(told.contains("[1 byte that is not UTF-8 is shown as \u{fffd}; edit_file cannot"), "{told}");
    // Behind a beginning that is text, only what cannot be shown is not.
    let numbers: String = (1..=20_000).map(|n| format!("{n}\n")).collect();
    for (late, shown, note) in [
        ("a\0b".to_owned(), "20001\ta\u{fffd}b\n", "1 NUL is shown as \u{fffd}]"),
        ("\0".repeat(100), "20001\t[no text]\n", "1 line is no text and is not shown]"),
    ] {
        project.write("late", format!("{numbers}{late}\nend\n"));
        let told = project.call("read_file", json!({ "path": "late", "offset": 18_003 })).unwrap();
        assert!(told.starts_with("18003\t18003\n") && told.contains(shown) && told.ends_with(note), "{shown}: {note}");
        // Who reads the beginning knows of it.
        let told = project.call("read_file", json!({ "path": "late" })).unwrap();
        assert!(told.ends_with("; further on, line 20001 is the first with a NUL]"), "{note}");
    }
    project.write("late", [numbers.as_bytes(), b"caf\xe9\n"].concat());
    let told = project.call("read_file", json!({ "path": "late" })).unwrap();
    let note = "line 20001 is the first with bytes that are not UTF-8: edit_file cannot edit this file]";
    assert!(told.ends_with(note), "{}", &told[told.len() - 200..]);

    let cyrillic: Vec<u8> = (0..400).map(|n: u16| 0xc0 + u8::try_from(n % 32).unwrap()).collect();
    let table: [(&[u8], &str); 5] = [
        (b"\x7fELF\x02\x01\x01\0", "an ELF program or library, 8 bytes"),
        (b"%PDF-1.7\n\0", "documents cannot be read here"),
        (b"text\0more", "binary data"),
        (&cyrillic, "not UTF-8 text, 400 bytes"),
        (b"\x1f\x8b\x08\0\0", "gzip data"),
    ];
    for (bytes, want) in table {
        project.write("binary", bytes);
        let err = project.refused("read_file", json!({ "path": "binary" }));
        assert!(err.contains(want), "{err}");
    }
}

#[test]
fn a_wrong_name_gets_a_better_one() {
    let project = Project::new();
    project.write("src/main.rs", "");
    let err = project.refused("read_file", json!({ "path": "src/mian.rs" }));
    assert_eq!(err, "`src/mian.rs` does not exist; did you mean `src/main.rs`?");
    let err = project.refused("read_file", json!({ "path": "src" }));
    assert_eq!(err, "`src` is a folder; use `list_dir`");
}

#[test]
fn too_large_outputs_are_kept_to_be_read() {
    let mut project = Project::new();
    let store = project.outside("store/agent");
    project.cx.outputs = Some(std::sync::Arc::new(max_team_tools::OutputStore::new(store.clone())));
    for number in 0..100 {
        project.write(&format!("d{number}/f.txt"), format!("{}\n", "wide ".repeat(400)).repeat(4));
    }
    let told = project.call("search_code", json!({ "pattern": "wide", "context": 3 })).unwrap();
    // Whatever a tool gives, the registry bounds; a tool that bounds itself has nothing to keep.
    assert!(told.len() <= 96 << 10);

    let kept = max_team_tools::OutputStore::new(store).keep("first\nsecond\n").unwrap();
    let action = project.action("read_file", &json!({ "path": kept })).unwrap();
    assert_eq!((action.kind, action.target.as_str()), (ActionKind::Query, kept.as_str()));
    assert_eq!(
        project.call("read_file", json!({ "path": kept, "offset": 2 })).unwrap(),
        "2\tsecond\n\n[lines 2-2 of 2]"
    );
    assert!(project.call("search_code", json!({ "pattern": "sec", "path": kept })).unwrap().contains("2:second"));
    for path in ["@output/none.txt", "@output/../x", "@output/"] {
        project.refused("read_file", json!({ "path": path }));
    }
    // Nobody else finds it.
    project.cx.outputs = None;
    assert!(project.refused("read_file", json!({ "path": kept })).contains("there is no output"));
}
