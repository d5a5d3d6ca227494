//! All skills of one project and one user: which file provides a name, which skills are offered to models, and what is
//! wrong.
//!
//! A skill of the project takes precedence over one of the user with the same name, and the shadowed file is reported.
//! An untrusted skill shadows nothing: a cloned project must not replace the user's own skills.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use max_team_core::text::quote;

use super::find::{Places, Trust};
use super::known::SkillCache;
use super::pin::Pin;
use super::{CATALOGUE_BYTES_MIN, CATALOGUE_SHARE, LISTED_CHARS_MAX, SKILLS_MAX, Scope, Skill, State, builtin, find};
use crate::front_matter;
use crate::shared::lock;

/// The text above the list.
const ABOVE: &str = include_str!("../../../../prompts/skills.md");
/// Estimated bytes of a token.
const TOKEN_BYTES: u64 = 4;
/// Bytes of the line that counts the rest.
const MORE_BYTES: usize = 64;
/// How long a catalogue is used before the folders are checked again.
const FRESH: Duration = Duration::from_secs(1);

/// A file that is no skill, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The file, or the folder.
    pub file: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

/// A skill with the name of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shadow {
    /// The name that two skills have.
    pub name: String,
    /// The file that is not used.
    pub file: PathBuf,
    /// The file that is used.
    pub by: PathBuf,
}

/// All skills that one project and one user have, with what is wrong about them.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    skills: BTreeMap<String, Skill>,
    /// Skills with a name that another one has.
    pub shadows: Vec<Shadow>,
    /// Files that cannot be used.
    pub broken: Vec<Broken>,
    /// Files beside skills that are no skills.
    pub skipped: Vec<Broken>,
    root: PathBuf,
    trust: Trust,
}

impl Catalogue {
    /// Reads the skills of the user, of the project at `root`, and those that come with the program.
    pub fn read(places: &Places, root: &Path) -> Self {
        let known = SkillCache::kept_in(places.index.clone());
        let catalogue = Self::again(places, root, &known);
        known.keep();
        catalogue
    }

    /// Like `read`, with the cache of earlier reads.
    fn again(places: &Places, root: &Path, known: &SkillCache) -> Self {
        let mut found = places.find(root, known);
        if places.builtin {
            found.skills.extend(builtin::all());
        }
        let (root, trust) = (root.to_path_buf(), places.trust.clone());
        let mut catalogue = Self { broken: found.broken, skipped: found.skipped, root, trust, ..Self::default() };
        let words = if found.skills.iter().any(|skill| skill.scope == Scope::Project) {
            catalogue.trust.of(&catalogue.root)
        } else {
            Vec::new()
        };
        for mut skill in found.skills {
            if skill.scope == Scope::Project {
                skill.state = trusted(&skill, &words);
            }
            let missing = skill.head.needs.missing(&places.machine);
            if skill.state == State::Ready && !missing.is_empty() {
                skill.state = State::Lacks(missing);
            }
            catalogue.add(skill);
        }
        for name in places.disabled.of(&catalogue.root) {
            if let Some(skill) = catalogue.skills.get_mut(&name) {
                skill.state = State::Off;
            }
        }
        catalogue
    }

    /// Skills are added in the order of precedence.
    fn add(&mut self, skill: Skill) {
        let is_strange = |skill: &Skill| matches!(skill.state, State::Untrusted | State::Changed);
        if self.skills.len() >= SKILLS_MAX && !self.skills.contains_key(&skill.name) {
            let why = format!("there are more than {SKILLS_MAX} skills; it is left out");
            self.broken.push(Broken { file: skill.file, why });
            return;
        }
        match self.skills.get_mut(&skill.name) {
            Some(first) if is_strange(first) && !is_strange(&skill) => {
                let lost = std::mem::replace(first, skill);
                self.shadows.push(Shadow { name: lost.name, file: lost.file, by: first.file.clone() });
            }
            Some(first) => {
                self.shadows.push(Shadow { name: skill.name, file: skill.file, by: first.file.clone() });
            }
            None => drop(self.skills.insert(skill.name.clone(), skill)),
        }
    }

    /// All skills that are used, by name.
    pub fn all(&self) -> impl Iterator<Item = &Skill> {
        self.skills.values()
    }

    /// The skill of that name.
    pub fn get(&self, name: &str) -> Option<&Skill> {
        self.skills.get(name)
    }

    /// The skills that are listed for an agent with these tools.
    pub fn offered<'a>(&'a self, tools: &'a [String]) -> impl Iterator<Item = &'a Skill> {
        self.all().filter(|skill| skill.is_offered() && is_doable(skill, tools))
    }

    /// The list for a prompt: names and descriptions, within a share of the context window. `delegates`: whether to
    /// include skills that another agent carries out.
    pub fn listing(&self, window_tokens: u64, tools: &[String], delegates: bool) -> String {
        let usable = self.offered(tools).filter(|skill| delegates || skill.done_by().is_none());
        let offered: Vec<(&str, Cow<'_, str>)> = usable.map(|skill| (skill.name.as_str(), about(skill))).collect();
        let offered: Vec<(&str, &str)> = offered.iter().map(|(name, about)| (*name, &**about)).collect();
        if offered.is_empty() {
            return String::new();
        }
        let share = usize::try_from(window_tokens / CATALOGUE_SHARE * TOKEN_BYTES).unwrap_or(usize::MAX);
        let lines = lines(&offered, share.max(CATALOGUE_BYTES_MIN));
        format!("{}\n\n{lines}", ABOVE.trim_end())
    }

    /// The whole text of a skill, without its front matter.
    pub fn text(&self, skill: &Skill) -> Result<String, String> {
        self.load(skill).map(|(_, text)| text)
    }

    /// A skill with its text, as the file is now: metadata and text come from the same bytes. The folder of a
    /// project's skill must match its pin again, and the text is part of the bytes that the pin covers.
    pub fn load(&self, skill: &Skill) -> Result<(Skill, String), String> {
        if let Some(text) = builtin::text(&skill.file) {
            return Ok((skill.clone(), text.to_owned()));
        }
        let bytes = if skill.scope == Scope::Project { self.pinned(skill)? } else { find::whole(&skill.file)? };
        let now = find::made_of(&bytes, &skill.file, &skill.name, skill.scope)?;
        // It must still be the skill that was offered.
        if now.name != skill.name {
            return Err(format!("it is called `{}` now", quote(&now.name)));
        }
        let Skill { folder, warnings, state, .. } = skill.clone();
        Ok((Skill { folder, warnings, state, ..now }, body(&bytes)))
    }

    /// The file of a project's skill, if it is as the user trusts it.
    fn pinned(&self, skill: &Skill) -> Result<Vec<u8>, String> {
        let words = self.trust.of(&self.root);
        if !is_known(skill, &words) {
            return Err(format!("not trusted yet: `max-team skills trust {}`", skill.name));
        }
        let (pin, bytes) = Pin::with(place(skill), &skill.file)?;
        if !words.contains(&Trust::word(&skill.name, &pin)) {
            return Err("it has changed since the user trusted it".to_owned());
        }
        find::bounded(bytes)
    }

    /// The text as it is written, trusted or not: for people who decide whether to trust it.
    pub fn written(skill: &Skill) -> Result<String, String> {
        match builtin::text(&skill.file) {
            Some(text) => Ok(text.to_owned()),
            None => find::whole(&skill.file).map(|bytes| body(&bytes)),
        }
    }

    /// The pin that the user would approve.
    pub fn pin(skill: &Skill) -> Result<Pin, String> {
        Pin::of(place(skill))
    }

    /// The folder it was read for.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

/// The description for a model. Restrictions come first, because the end may be cut.
fn about(skill: &Skill) -> Cow<'_, str> {
    if let Some(contract) = &skill.contract {
        return Cow::Owned(format!("(input {}) {}", contract.shape(), skill.description));
    }
    if skill.head.paths.is_empty() {
        return Cow::Borrowed(&skill.description);
    }
    let globs: Vec<String> = skill.head.paths.iter().map(|glob| format!("`{glob}`")).collect();
    Cow::Owned(format!("(Only for work on files that match {}.) {}", globs.join(", "), skill.description))
}

fn body(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    front_matter::text(front_matter::cut(&text).body)
}

/// Whether an agent with these tools can fulfil the contract.
pub(super) fn is_doable(skill: &Skill, tools: &[String]) -> bool {
    skill.contract.as_ref().is_none_or(|contract| contract.tools.iter().all(|tool| tools.contains(tool)))
}

/// Whether the user trusts a skill of the project. Its folder is hashed only if the user has once approved a skill of
/// that name.
fn trusted(skill: &Skill, words: &[String]) -> State {
    if !is_known(skill, words) {
        return State::Untrusted;
    }
    let pin = Catalogue::pin(skill).ok().map(|pin| Trust::word(&skill.name, &pin));
    if pin.is_some_and(|word| words.contains(&word)) { State::Ready } else { State::Changed }
}

/// Whether the user has ever approved a skill of that name.
fn is_known(skill: &Skill, words: &[String]) -> bool {
    let beginning = format!("skill {} ", skill.name);
    words.iter().any(|word| word.starts_with(&beginning))
}

/// The skill's own folder, or its file.
fn place(skill: &Skill) -> &Path {
    skill.folder.as_deref().unwrap_or(&skill.file)
}

/// One line each. If they do not fit, all descriptions are cut to the same length; if even the names do not, the last
/// are only counted.
fn lines(offered: &[(&str, &str)], bytes_max: usize) -> String {
    let line = |(name, description): (&str, &str), chars: usize| {
        let short: String = description.chars().take(chars).collect();
        match (chars, short.len() < description.len()) {
            (0, _) => format!("- {name}\n"),
            (_, true) => format!("- {name}: {}…\n", short.trim_end()),
            (_, false) => format!("- {name}: {short}\n"),
        }
    };
    let all = |chars: usize| offered.iter().map(|skill| line(*skill, chars)).collect::<String>();
    let (mut low, mut high) = (0, LISTED_CHARS_MAX);
    if all(high).len() > bytes_max {
        while low < high {
            let middle = usize::midpoint(low, high + 1);
            if all(middle).len() <= bytes_max { low = middle } else { high = middle - 1 }
        }
        // A few characters say less than none.
        high = if low < 16 { 0 } else { low };
    }
    let whole = all(high);
    if whole.len() <= bytes_max {
        return whole;
    }
    let (mut text, mut told) = (String::new(), 0);
    for skill in offered {
        let line = line(*skill, 0);
        if text.len() + line.len() + MORE_BYTES > bytes_max {
            break;
        }
        text.push_str(&line);
        told += 1;
    }
    format!("{text}- … and {} more, which load by their names\n", offered.len() - told)
}

/// The catalogue of the current project, read again when files may have changed.
#[derive(Debug, Default)]
pub(crate) struct Library {
    places: Places,
    known: SkillCache,
    made: Mutex<Option<(Instant, Arc<Catalogue>)>>,
}

impl Library {
    pub(crate) fn new(places: Places) -> Self {
        Self { known: SkillCache::kept_in(places.index.clone()), places, made: Mutex::new(None) }
    }

    /// The catalogue of a project. Blocking; a wave of members shares one read.
    pub(crate) fn of(&self, root: &Path) -> Arc<Catalogue> {
        let mut made = lock(&self.made);
        if let Some((at, catalogue)) = &*made
            && catalogue.root() == root
            && at.elapsed() < FRESH
        {
            return Arc::clone(catalogue);
        }
        let catalogue = Arc::new(Catalogue::again(&self.places, root, &self.known));
        self.known.keep();
        *made = Some((Instant::now(), Arc::clone(&catalogue)));
        catalogue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_fits_its_share() {
        let long = "x".repeat(3_000);
        let skills: Vec<(String, String)> =
            (0..40).map(|number| (format!("skill-{number:02}"), long.clone())).collect();
        let offered: Vec<(&str, &str)> = skills.iter().map(|(name, words)| (name.as_str(), words.as_str())).collect();
        let wide = lines(&offered, usize::MAX);
        assert!(wide.lines().all(|line| line.chars().count() <= LISTED_CHARS_MAX + 16), "each has its own bound");
        for bytes_max in [20_000, 4_000, 1_000] {
            let text = lines(&offered, bytes_max);
            assert!(text.len() <= bytes_max && text.lines().count() == 40, "{bytes_max}: {}", text.len());
        }
        assert_eq!(lines(&offered, 1_000).lines().next(), Some("- skill-00"));
        let few = lines(&offered, 100);
        assert!(few.len() <= 100 && few.ends_with("- … and 37 more, which load by their names\n"), "{few}");
    }
}
