//! Why the value of a flag is refused, in both languages.

use std::fmt;

use max_team_core::suggest::nearest;
use max_team_workspace::i18n::{Lang, Translated};

/// The reason, as a sentence that says which values there are.
#[derive(Debug, PartialEq)]
pub(crate) struct ValueFault(Translated);

impl ValueFault {
    pub(super) fn new(words: impl Fn(Lang) -> String) -> Self {
        Self(Translated::new(words))
    }

    /// There are only these values; one that is spelled nearly like the given text is named.
    pub(super) fn one_of(given: &str, names: &[&str]) -> Self {
        let all = names.join(", ");
        match nearest(given, names.iter().copied()) {
            Some(near) => Self::new(|lang| lang.value_one_of_near(&all, near)),
            None => Self::new(|lang| lang.value_one_of(&all)),
        }
    }

    pub(super) fn words(&self, lang: Lang) -> &str {
        self.0.get(lang)
    }
}

impl fmt::Display for ValueFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words(Lang::En))
    }
}

impl std::error::Error for ValueFault {}
