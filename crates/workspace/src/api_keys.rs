//! Where the key of a provider comes from: settings, a private file, a helper command, or the environment.
//!
//! Never the command line (every process can read that), never a guess: a key that was written down for one
//! provider is not sent to another.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use secrecy::SecretString;

use crate::config::{Env, Llm};
use crate::exit::{CliError, Exit};

/// Bytes of a key; what is longer is not one.
const KEY_BYTES_MAX: u64 = 16 << 10;
/// How long a helper may take; some ask the user for a finger.
const HELPER_WAIT: Duration = Duration::from_secs(60);

/// A key and the place it was found in, for `doctor` and `stream-json`.
#[derive(Debug, Clone)]
pub struct ApiKey {
    pub secret: SecretString,
    pub source: String,
}

/// Finds the key for a provider, or nothing.
pub fn find(llm: &Llm, env: &Env, provider: &str, variables: &[String]) -> Result<Option<ApiKey>, CliError> {
    let written = is_written(llm);
    if written && llm.provider.as_deref() == Some(provider) {
        return from_settings(llm).map(Some);
    }
    require_provider(llm)?;
    Ok(variables.iter().find_map(|name| {
        let value = env.get(name).map(str::trim).filter(|value| !value.is_empty())?;
        Some(ApiKey { secret: SecretString::from(value.to_owned()), source: name.clone() })
    }))
}

/// Refuses settings that name a key and no provider: a key is never sent to a provider that it may not belong to.
pub fn require_provider(llm: &Llm) -> Result<(), CliError> {
    if is_written(llm) && llm.provider.is_none() {
        return Err(CliError::said(Exit::Config, |lang| lang.key_without_provider().to_owned()));
    }
    Ok(())
}

/// Whether a key for a provider is named anywhere; nothing is read or run to find out.
pub fn is_named(llm: &Llm, env: &Env, provider: &str, variables: &[String]) -> bool {
    let is_set = |name: &String| env.get(name).is_some_and(|value| !value.trim().is_empty());
    (is_written(llm) && llm.provider.as_deref() == Some(provider)) || variables.iter().any(is_set)
}

/// Whether the settings name a key.
fn is_written(llm: &Llm) -> bool {
    llm.api_key.is_some() || llm.api_key_file.is_some() || llm.api_key_helper.is_some()
}

fn from_settings(llm: &Llm) -> Result<ApiKey, CliError> {
    if let Some(secret) = &llm.api_key {
        return Ok(ApiKey { secret: secret.clone(), source: "llm.api_key".into() });
    }
    if let Some(path) = &llm.api_key_file {
        return Ok(ApiKey { secret: from_file(path)?, source: "llm.api_key_file".into() });
    }
    let argv = llm.api_key_helper.as_deref().unwrap_or_default();
    Ok(ApiKey { secret: from_helper(argv)?, source: "llm.api_key_helper".into() })
}

fn from_file(path: &Path) -> Result<SecretString, CliError> {
    let shown = path.display();
    let what = format!("llm.api_key_file `{shown}`");
    let broken = |error: std::io::Error| {
        CliError::said(Exit::Config, |lang| lang.setting_fault(&what, lang.system_fault(&error)))
    };
    let file = std::fs::File::open(path).map_err(broken)?;
    let mode = file.metadata().map_err(broken)?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(CliError::said(Exit::Config, |lang| lang.key_file_readable(&shown)));
    }
    let mut text = String::new();
    file.take(KEY_BYTES_MAX).read_to_string(&mut text).map_err(broken)?;
    secret(&text, &what)
}

fn from_helper(argv: &[String]) -> Result<SecretString, CliError> {
    let Some((program, arguments)) = argv.split_first() else {
        return Err(CliError::said(Exit::Config, |lang| lang.key_helper_empty().to_owned()));
    };
    let what = format!("llm.api_key_helper `{program}`");
    let cannot = |error: std::io::Error| {
        CliError::said(Exit::Config, |lang| lang.key_helper_unrunnable(&what, lang.system_fault(&error)))
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = command.spawn().map_err(cannot)?;
    let (sender, receiver) = mpsc::channel();
    let output = child.stdout.take();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let read = output.map_or(Ok(0), |output| output.take(KEY_BYTES_MAX).read_to_end(&mut text));
        // The receiver is gone if reading took too long.
        drop(sender.send(read.map(|_| text)));
    });
    let Ok(text) = receiver.recv_timeout(HELPER_WAIT) else {
        drop(child.kill());
        drop(child.wait());
        return Err(CliError::said(Exit::NoKey, |lang| lang.key_helper_silent(&what, HELPER_WAIT.as_secs())));
    };
    let text = text.map_err(cannot)?;
    let status = child.wait().map_err(cannot)?;
    if !status.success() {
        return Err(CliError::said(Exit::NoKey, |lang| lang.key_helper_failed(&what, status)));
    }
    secret(&String::from_utf8_lossy(&text), &what)
}

fn secret(text: &str, what: &str) -> Result<SecretString, CliError> {
    let key = text.trim();
    let sound = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
    if sound {
        Ok(SecretString::from(key.to_owned()))
    } else {
        Err(CliError::said(Exit::NoKey, |lang| lang.key_unusable(what)))
    }
}
