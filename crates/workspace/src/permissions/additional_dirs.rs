//! Folders besides the project's, as settings name them (`additionalDirectories`).

use std::path::Path;

use max_team_core::policy::rule::Anchors;

use crate::setup::AppEnv;

/// The real folder that a text means. One that everything else lies in is refused: it would make the team's own files, or
/// the project as a whole, a folder like any other.
pub(super) fn folder(text: &str, anchors: &Anchors<'_>, place: &AppEnv) -> Result<String, String> {
    let home = Path::new(anchors.home);
    let named = match text.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => Path::new(anchors.root).join(text),
    };
    let real = named.canonicalize().map_err(|error| error.to_string())?;
    if !real.is_dir() {
        return Err("it is no folder".to_owned());
    }
    let own = place.home.canonicalize().unwrap_or_else(|_| place.home.clone());
    let user = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    for (kept, what) in
        [(own.as_path(), "the team's journal"), (&user, "your home folder"), (Path::new(anchors.root), "the project")]
    {
        if kept.starts_with(&real) {
            return Err(format!("{what} lies in it; name the folders that you mean"));
        }
    }
    if real.starts_with(&own) {
        return Err("the team's journal is kept there".to_owned());
    }
    real.into_os_string().into_string().map_err(|_| "its name is no text".to_owned())
}
