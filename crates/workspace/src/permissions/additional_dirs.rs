//! Folders besides the project's, as settings name them (`additionalDirectories`).

use std::path::Path;

use max_team_core::policy::rule::Anchors;

use crate::i18n::{Lang, Translated};
use crate::setup::AppEnv;

/// The real folder that a text means. One that everything else lies in is refused: it would make the team's own files, or
/// the project as a whole, a folder like any other.
pub(super) fn folder(text: &str, anchors: &Anchors<'_>, place: &AppEnv) -> Result<String, Translated> {
    let fixed = |words: fn(Lang) -> &'static str| Translated::new(|lang| words(lang).to_owned());
    let home = Path::new(anchors.home);
    let named = match text.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => Path::new(anchors.root).join(text),
    };
    let real = named.canonicalize().map_err(|error| Translated::new(|lang| lang.system_fault(&error)))?;
    if !real.is_dir() {
        return Err(fixed(Lang::folder_no_folder));
    }
    let own = place.home.canonicalize().unwrap_or_else(|_| place.home.clone());
    let user = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    let kept = [own.as_path(), &user, Path::new(anchors.root)];
    let words = [Lang::folder_holds_journal, Lang::folder_holds_home, Lang::folder_holds_project];
    if let Some((_, words)) = kept.iter().zip(words).find(|(kept, _)| kept.starts_with(&real)) {
        return Err(fixed(words));
    }
    if real.starts_with(&own) {
        return Err(fixed(Lang::folder_in_journal));
    }
    real.into_os_string().into_string().map_err(|_| fixed(Lang::folder_no_text))
}
