//! Documents, read by the program's own child: real ones, and ones that were made to break it.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use max_team_core::chat::Part;
use max_team_tools::{Registry, Root, Services, ToolContext, ToolError};
use serde_json::json;
use tempfile::TempDir;

/// A PDF of one page for each text, written by hand.
fn pdf(pages: &[&str]) -> Vec<u8> {
    let kids: String = (0..pages.len()).map(|page| format!("{} 0 R ", 4 + 2 * page)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", pages.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    for (page, text) in pages.iter().enumerate() {
        let stream = format!("BT /F1 12 Tf 72 720 Td ({text}) Tj ET");
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {} 0 R /Resources << /Font << /F1 3 0 R >> >> >>",
            5 + 2 * page
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{stream}\nendstream", stream.len()));
    }
    assembled(&objects)
}

fn assembled(objects: &[String]) -> Vec<u8> {
    let mut bytes = b"%PDF-1.4\n".to_vec();
    let mut offsets = Vec::new();
    for (number, object) in objects.iter().enumerate() {
        offsets.push(bytes.len());
        bytes.extend(format!("{} 0 obj\n{object}\nendobj\n", number + 1).bytes());
    }
    let table = bytes.len();
    bytes.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).bytes());
    for offset in offsets {
        bytes.extend(format!("{offset:010} 00000 n \n").bytes());
    }
    let end = format!("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n", objects.len() + 1);
    bytes.extend(end.bytes());
    bytes
}

struct Folder {
    dir: TempDir,
    cx: ToolContext,
    registry: Registry,
}

impl Folder {
    fn new() -> Self {
        Self::with(vec![env!("CARGO_BIN_EXE_max-team").into(), "__read_document".into()])
    }

    fn with(reader: Vec<OsString>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut cx = ToolContext::new(Arc::new(Root::open(dir.path()).unwrap()));
        cx.services = Arc::new(Services { reader, ..Services::default() });
        Self { dir, cx, registry: Registry::builtin() }
    }

    fn read(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<String, ToolError> {
        std::fs::write(self.dir.path().join(name), bytes).unwrap();
        let input = json!({ "path": name });
        let intent = self.registry.prepare(&self.cx, "read_file", &input)?.action;
        let output = self.registry.run(&self.cx, "read_file", input, &intent, false)?;
        let [Part::Text { text }] = output.content.as_slice() else { panic!("{output:?}") };
        Ok(text.clone())
    }

    fn refused(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        match self.read(name, bytes) {
            Err(ToolError::Correctable(words)) => words,
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn a_pdf_is_read_page_by_page() {
    let folder = Folder::new();
    let told = folder.read("a.pdf", pdf(&["Hello paper", "Second page"])).unwrap();
    assert_eq!(
        told,
        "1\t[page 1]\n2\tHello paper\n3\t\n4\t[page 2]\n5\tSecond page\n6\t\n\n[the text of a PDF document]"
    );
    assert!(folder.refused("empty.pdf", pdf(&[""])).contains("they may be pictures"));
}

#[test]
fn hostile_documents_break_only_their_reader() {
    let folder = Folder::new();
    let whole = pdf(&["Hello paper"]);
    for end in [9, 20, whole.len() / 3, whole.len() / 2, whole.len() - 60] {
        folder.refused("cut.pdf", &whole[..end]);
    }
    let deep = |open: &str, close: &str| {
        let nested = open.repeat(200_000) + &close.repeat(200_000);
        assembled(&[
            "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
            format!("<< /Type /Pages /Kids {nested} /Count 1 >>"),
        ])
    };
    let kids = |kids: &str| {
        assembled(&[
            "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
            format!("<< /Type /Pages /Kids [{kids}] /Count 9 >>"),
        ])
    };
    let hostile = [
        ("arrays", deep("[", "]")),
        ("dictionaries", deep("<< /A ", " >>")),
        ("texts", deep("(", ")")),
        ("itself", kids("2 0 R 2 0 R")),
        ("nothing", kids("99 0 R")),
        ("zip", b"PK\x03\x04 and then nothing".to_vec()),
    ];
    let started = Instant::now();
    for (name, bytes) in hostile {
        let words = folder.refused(name, bytes);
        assert!(words.starts_with(&format!("`{name}`: the document cannot be read")), "{words}");
    }
    assert!(started.elapsed() < Duration::from_secs(120));
}

#[test]
fn a_reader_that_breaks_or_fills_memory_is_a_word_to_the_model() {
    let broken = Folder::with(vec!["/bin/sh".into(), "-c".into(), "kill -SEGV $$".into()]);
    assert!(broken.refused("a.pdf", "%PDF-1.4").contains("it broke its reader (signal: 11"));
    let missing = Folder::with(vec!["/no/such/program".into()]);
    assert!(missing.refused("a.pdf", "%PDF-1.4").contains("cannot be started"));
}

/// A reader that never answers is killed as soon as nobody wants its answer.
#[cfg(target_os = "linux")]
#[test]
fn a_reader_that_hangs_is_killed() {
    let place = tempfile::tempdir().unwrap();
    let pid_file = place.path().join("pid");
    let script = format!("echo $$ > {}; exec sleep 600", pid_file.display());
    let folder = Folder::with(vec!["/bin/sh".into(), "-c".into(), script.into()]);
    let (cancel, watched) = (folder.cx.cancel.clone(), pid_file.clone());
    let stopper = std::thread::spawn(move || {
        while std::fs::read_to_string(&watched).map_or(true, |pid| !pid.ends_with('\n')) {
            std::thread::yield_now();
        }
        cancel.cancel();
    });
    assert!(folder.refused("a.pdf", "%PDF-1.4").contains("stopped before it was done"));
    stopper.join().unwrap();
    let pid = std::fs::read_to_string(pid_file).unwrap();
    assert!(!std::path::Path::new(&format!("/proc/{}", pid.trim())).exists(), "{pid}");
}

/// The child itself: it has limits before it reads a byte.
#[cfg(target_os = "linux")]
#[test]
fn the_child_limits_itself() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_max-team"))
        .arg("__read_document")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // More than a pipe holds: once this has gone through, the child is reading.
    stdin.write_all(&vec![b'%'; 1 << 20]).unwrap();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    let soft = |name: &str| {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].split_whitespace().next().unwrap().to_owned()
    };
    let found =
        ["Max cpu time", "Max file size", "Max core file size", "Max open files", "Max address space"].map(soft);
    assert_eq!(found, ["20", "0", "0", "8", "1073741824"]);
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    for wall in ["NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000"] {
        assert!(status.lines().any(|line| line == wall), "{wall}: {status}");
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(!output.stdout.is_empty() && !output.stdout.starts_with(b"+"));
}
