//! The child process that parses one document: bytes on its standard input, text or a reason on its standard output.
//!
//! It limits itself before it reads a byte, and trusts nothing after that: the worst that a parser can do is to kill
//! this process, which the parent reports as a damaged document.

use std::fs::File;
use std::io::{self, Read as _, Write as _};

use max_team_core::limits::{DOCUMENT_BYTES_MAX, DOCUMENT_MEMORY_BYTES_MAX, DOCUMENT_MS_MAX, DOCUMENT_TEXT_BYTES_MAX};
use rustix::process::{Resource, Rlimit, setrlimit};

use super::{FINE, office};

/// Files that the child may have open: its pipes, and a few to spare.
const FILES_MAX: u64 = 8;

/// Reads one document from standard input and writes its text to standard output. For a process that does nothing
/// else.
pub fn serve() -> io::Result<()> {
    confine()?;
    // Parsers print; what they print must not get into the answer.
    let mut answer = File::from(rustix::io::dup(io::stdout())?);
    rustix::stdio::dup2_stdout(io::stderr())?;
    let mut bytes = Vec::new();
    io::stdin().lock().take(DOCUMENT_BYTES_MAX).read_to_end(&mut bytes)?;
    match text(&bytes) {
        Ok(text) => {
            let end = text.floor_char_boundary(DOCUMENT_TEXT_BYTES_MAX);
            answer.write_all(FINE)?;
            answer.write_all(text.as_bytes().get(..end).unwrap_or_default())
        }
        Err(why) => answer.write_all(why.as_bytes()),
    }
}

/// Gives up what parsing does not need: files, the network, and more than its share of anything.
fn confine() -> io::Result<()> {
    let seconds = DOCUMENT_MS_MAX.div_ceil(1_000);
    let limits = [
        (Resource::As, DOCUMENT_MEMORY_BYTES_MAX),
        (Resource::Cpu, seconds),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nofile, FILES_MAX),
    ];
    // The child dies with the process that wants the text.
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    for (resource, most) in limits {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    max_team_sandbox::renounce()
}

fn text(bytes: &[u8]) -> Result<String, String> {
    if bytes.starts_with(b"PK") { office::text(bytes) } else { pdf(bytes) }
}

fn pdf(bytes: &[u8]) -> Result<String, String> {
    let pages = pdf_extract::extract_text_from_mem_by_pages(bytes).map_err(|err| err.to_string())?;
    let mut text = String::new();
    for (number, page) in pages.iter().enumerate() {
        text.push_str(&format!("[page {}]\n{}\n\n", number + 1, page.trim()));
    }
    if pages.iter().all(|page| page.trim().is_empty()) {
        return Err(format!("there is no text in its {} pages; they may be pictures", pages.len()));
    }
    Ok(text)
}
