//! A yes that is remembered for the repository: a rule in `.max-team/settings.local.json`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::{LOCAL_FILE, TrustedRules};
use crate::i18n::{Lang, Translated};

/// Adds rules to the project's local settings, and to what the user trusts there. What is in the file stays.
pub fn remember(home: &Path, root: &Path, rules: &[String]) -> Result<(), String> {
    add(home, root, rules).map_err(|why| why.get(Lang::En).to_owned())
}

fn add(home: &Path, root: &Path, rules: &[String]) -> Result<(), Translated> {
    let path = root.join(LOCAL_FILE);
    let told =
        |why: &dyn Fn(Lang) -> String| Translated::new(|lang| lang.rules_unchangeable(path.display(), why(lang)));
    let failed = |error: std::io::Error| told(&|lang| lang.system_fault(&error));
    // Before anything is written: what is not to be trusted is of no use in the file.
    let mut trusted = TrustedRules::read(home)?;
    let mut settings = match std::fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| told(&|lang| lang.json_fault(&error)))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => json!({}),
        Err(error) => return Err(failed(error)),
    };
    let allow = settings
        .as_object_mut()
        .and_then(|top| top.entry("permissions").or_insert_with(|| json!({})).as_object_mut())
        .and_then(|permissions| permissions.entry("allow").or_insert_with(|| json!([])).as_array_mut())
        .ok_or_else(|| told(&|lang| lang.rules_no_list().to_owned()))?;
    for rule in rules {
        if !allow.iter().any(|known| known.as_str() == Some(rule)) {
            allow.push(Value::from(rule.as_str()));
        }
    }
    let text = serde_json::to_string_pretty(&settings).map_err(|error| told(&|lang| lang.json_fault(&error)))?;
    // Commands that run must not take it for a file that they have planted.
    max_team_tools::command::approve_file(root, Path::new(LOCAL_FILE), format!("{text}\n").as_bytes());
    write(&path, &text).map_err(failed)?;
    trusted.add(&root.to_string_lossy(), rules).map_err(failed)
}

/// Which of these rules the project's local settings have, and where those are. What cannot be read allows nothing.
pub fn remembered<'r>(root: &Path, rules: &'r [String]) -> (PathBuf, Vec<&'r str>) {
    let path = root.join(LOCAL_FILE);
    let settings: Option<Value> = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let allow = settings.as_ref().and_then(|settings| settings.pointer("/permissions/allow")?.as_array());
    let has = |rule: &&str| allow.is_some_and(|allow| allow.iter().any(|known| known.as_str() == Some(*rule)));
    (path, rules.iter().map(String::as_str).filter(has).collect())
}

/// Replaces a file whole, or not at all.
pub fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    // By this name the watch of a running command leaves it alone.
    let name = format!(".max-team-{}-{now}", std::process::id());
    let mut draft = tempfile::Builder::new().prefix(&name).suffix(".tmp").rand_bytes(0).tempfile_in(folder)?;
    draft.write_all(text.as_bytes())?;
    draft.write_all(b"\n")?;
    draft.as_file().sync_all()?;
    draft.persist(path).map_err(|error| error.error)?;
    Ok(())
}
