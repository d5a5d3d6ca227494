//! The menu of a mention that is being typed: teammates first, then files and folders of the project.
//!
//! A list of paths is asked for when a mention begins and dropped when it is over, so that an idle chat keeps none.

use super::mention::{OpenMention, open_at, rank, written};
use super::teammates::{TeammateEntry, Teammates};

/// Choices that are offered at once.
const CHOICES_MAX: usize = 8;

/// The completions of a mention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MentionChoice {
    Teammate(TeammateEntry),
    Path(String),
}

impl MentionChoice {
    /// The text that takes the mention's place.
    pub(super) fn written(&self) -> String {
        match self {
            Self::Teammate(known) => format!("@{} ", known.name),
            Self::Path(path) => written(path),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct MentionMenu {
    /// Where the mention begins that is being typed, in bytes of the draft.
    start: Option<usize>,
    choices: Vec<MentionChoice>,
    chosen: usize,
    paths: Vec<String>,
}

impl MentionMenu {
    /// The draft has changed. Returns whether the project's paths are to be listed.
    pub(super) fn update(&mut self, draft: &str, cursor: usize, teammates: &Teammates) -> bool {
        let Some(open) = open_at(draft, cursor) else {
            *self = Self::default();
            return false;
        };
        let is_new = self.start != Some(open.start);
        self.start = Some(open.start);
        let choices = self.fitting(open, teammates);
        if choices != self.choices {
            (self.choices, self.chosen) = (choices, 0);
        }
        is_new
    }

    fn fitting(&self, OpenMention { start, query }: OpenMention<'_>, teammates: &Teammates) -> Vec<MentionChoice> {
        // A teammate is written to at the beginning of a message.
        let names = teammates.iter().filter(|known| start == 0 && known.name.starts_with(query));
        let mut choices: Vec<MentionChoice> = names.cloned().map(MentionChoice::Teammate).take(CHOICES_MAX).collect();
        let paths = rank(query, self.paths.iter().map(String::as_str), CHOICES_MAX - choices.len());
        choices.extend(paths.into_iter().map(|path| MentionChoice::Path(path.to_owned())));
        choices
    }

    /// The project's paths have been listed.
    pub(super) fn fill(&mut self, paths: Vec<String>) {
        if self.start.is_some() {
            self.paths = paths;
        }
    }

    pub(super) fn choices(&self) -> impl Iterator<Item = (&MentionChoice, bool)> {
        self.choices.iter().enumerate().map(|(index, choice)| (choice, index == self.chosen))
    }

    /// The start of the mention, and its completion.
    pub(super) fn chosen(&self) -> Option<(usize, String)> {
        Some((self.start?, self.choices.get(self.chosen)?.written()))
    }

    /// Chooses the next or the previous one.
    pub(super) fn step(&mut self, forward: bool) {
        let count = self.choices.len();
        if count > 0 {
            self.chosen = (self.chosen + if forward { 1 } else { count - 1 }) % count;
        }
    }

    /// Whether there is something to choose from.
    pub(super) fn is_open(&self) -> bool {
        !self.choices.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn teammates(names: &[&str]) -> Teammates {
        let mut teammates = Teammates::default();
        names.iter().for_each(|name| teammates.add(name, "blue"));
        teammates
    }

    fn offered(menu: &MentionMenu) -> Vec<String> {
        let shown = |(choice, is_chosen): (&MentionChoice, bool)| {
            format!("{}{}", if is_chosen { ">" } else { "" }, choice.written().trim_end())
        };
        menu.choices().map(shown).collect()
    }

    #[test]
    fn teammates_come_first_and_paths_behind_them() {
        let teammates = teammates(&["alice", "bob"]);
        let mut menu = MentionMenu::default();
        assert!(menu.update("@", 1, &teammates), "a new mention lists the paths");
        assert_eq!(offered(&menu), [">@alice", "@bob"]);
        menu.fill(["app.rs", "a b.txt", "docs/"].map(str::to_owned).to_vec());
        assert!(!menu.update("@a", 2, &teammates));
        assert_eq!(offered(&menu), [">@alice", "@app.rs", "@\"a b.txt\""]);
        (0..3).for_each(|_| menu.step(true));
        assert_eq!(offered(&menu), [">@alice", "@app.rs", "@\"a b.txt\""], "around the list");
        menu.step(false);
        assert_eq!(menu.chosen(), Some((0, "@\"a b.txt\" ".to_owned())));
        assert!(menu.update("hi @a", 5, &teammates), "another mention");
        assert_eq!(offered(&menu), [">@app.rs", "@\"a b.txt\""], "teammates are written to at the beginning");
        menu.update("hi ", 3, &teammates);
        menu.step(true);
        assert!(!menu.is_open() && menu.paths.is_empty() && menu.chosen().is_none());
    }
}
