//! Putting files back: what steps did to files, and what of it can be taken back without touching anybody else's work.
//!
//! A step says of each file how it was before and after. The steps behind a point, in order, are a [`Trail`] per file: it
//! begins with what the file was at that point, and it is whole as long as each step begins where the last one ended. Where it is
//! not, somebody else has changed the file in between, and it is theirs. Nothing here looks at a disk.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::hash::Hash;
use crate::message::Principal;
use crate::policy::line::{End, Part};
use crate::policy::program::{self, Effect};
use crate::policy::{Action, Class, Deed, Line};

/// Whoever may write a file.
const WRITE: u16 = 0o222;

/// What is at a path, as far as anybody needs to know to tell it from something else.
#[derive(Debug, Clone, Copy, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing.
    Gone,
    /// A file.
    File {
        /// Of its bytes.
        hash: Hash,
        /// Whether it can be run.
        program: bool,
        /// Whether nobody but its owner may read it. Tells no two files apart: whoever puts it back needs to know, and older
        /// steps do not say.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        private: bool,
        /// What its owner, its group and everybody else may do with it (`0o640`); older steps do not say, nor does what lies in a copy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u16>,
    },
    /// A symbolic link.
    Link {
        /// Of what it points to.
        hash: Hash,
    },
    /// A file with more bytes than are written here; older steps say no more of it, nor does what lies in a copy.
    Large,
    /// The same, told from any other by its numbers: whoever writes to it changes them.
    Bulky {
        /// Its bytes.
        size: u64,
        /// Of its numbers.
        print: Hash,
    },
    /// Something else: a folder, a pipe.
    Other,
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { hash, program, .. }, Self::File { hash: other, program: runs, .. }) => {
                (hash, program) == (other, runs)
            }
            (Self::Link { hash }, Self::Link { hash: other }) => hash == other,
            (Self::Bulky { print, .. }, Self::Bulky { print: other, .. }) => print == other,
            (Self::Gone, Self::Gone) | (Self::Large, Self::Large) | (Self::Other, Self::Other) => true,
            _ => false,
        }
    }
}

impl State {
    /// Whether it is the other, as far as both say: equal and with the same permissions.
    pub fn fits(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Large, Self::Bulky { .. }) | (Self::Bulky { .. }, Self::Large) => true,
            _ => self == other && self.mode().zip(other.mode()).is_none_or(|(mode, other)| mode == other),
        }
    }

    /// Whether it is a file with more bytes than are written here.
    pub fn is_large(&self) -> bool {
        matches!(self, Self::Large | Self::Bulky { .. })
    }

    /// Its permissions, if it is a file and they are known.
    pub fn mode(&self) -> Option<u16> {
        match self {
            Self::File { mode, .. } => *mode,
            _ => None,
        }
    }

    /// The same with these permissions, if it is a file.
    #[must_use]
    pub fn with_mode(self, mode: Option<u16>) -> Self {
        match self {
            Self::File { hash, program, private, .. } => Self::File { hash, program, private, mode },
            other => other,
        }
    }

    /// What is known of it once it lies somewhere else: permissions and numbers are those of one place.
    #[must_use]
    pub fn elsewhere(self) -> Self {
        if self.is_large() { Self::Large } else { self.with_mode(None) }
    }

    /// The same in the stead of another, as whoever replaces a file leaves it: with the permissions of that one, if both can be run or
    /// neither.
    #[must_use]
    pub fn in_stead_of(self, old: Self) -> Self {
        match (self, old) {
            (Self::File { program, .. }, Self::File { program: ran, mode, .. }) if program == ran => {
                self.with_mode(mode)
            }
            _ => self.with_mode(None),
        }
    }

    /// The bytes that make it, by their hash.
    pub fn bytes(&self) -> Option<Hash> {
        match self {
            Self::File { hash, .. } | Self::Link { hash } => Some(*hash),
            Self::Gone | Self::Large | Self::Bulky { .. } | Self::Other => None,
        }
    }
}

/// What happened to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Which, from the root.
    pub path: String,
    /// How it was.
    pub before: State,
    /// How it is.
    pub after: State,
}

/// What a step cannot take back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// The path; empty: everything.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Why not.
    pub why: Why,
}

/// Why a step cannot be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// A file with more bytes than are kept.
    Large,
    /// More files, or more bytes in all, than are kept.
    Many,
    /// Looking took too long.
    Slow,
    /// It could not be looked at, or nothing could be kept.
    Unread,
    /// It runs on in the background: nobody sees when it changes something.
    Background,
    /// It did not come to its end: whoever would have looked afterwards was gone.
    Cut,
}

/// What a step of an agent does to files: of a file tool in the commit of its intent, of a command in that of its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesChanged {
    /// The call.
    pub key: String,
    /// The folder that the paths lie beneath.
    pub root: String,
    /// What it changes.
    pub changes: Vec<Change>,
    /// What it may change besides that nobody can put back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Left>,
    /// Whether somebody has looked afterwards; if not, it is what the call is about to do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub seen: bool,
    /// Protected files that the call made without the user's approval, and that were moved away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<MovedFile>,
    /// When somebody had looked before that, in milliseconds since 1970: what others did meanwhile may be among it. Zero: as the
    /// call began.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub since_ms: i64,
}

/// A protected file that a command made without the user's approval, and that was moved away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedFile {
    /// The name that the command gave it, as a whole path.
    pub path: String,
    /// Where it is now; empty if it could not be moved.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub to: String,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// A file that is put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Put {
    /// The folder that its path lies beneath.
    pub root: String,
    /// From what it is to what it was.
    pub change: Change,
}

/// Files are about to be put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewound {
    /// Which time.
    pub id: Uuid,
    /// They become what they were behind the entry of this number.
    pub behind: u64,
    /// The files.
    pub puts: Vec<Put>,
    /// Who wanted it, and where they sat; entries of before do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Principal>,
}

/// It was done, as far as it could be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewindEnded {
    /// Which time.
    pub id: Uuid,
    /// What could not be put back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Failed>,
}

/// A file that could not be put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// The folder that its path lies beneath.
    pub root: String,
    /// Which.
    pub path: String,
    /// Why, in words.
    pub why: String,
}

/// What the lead is told of files that were put back, beside the words that begin its turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// What the model reads.
    pub text: String,
    /// The first of the files, as people name them; letters of before do not say.
    #[serde(default)]
    pub files: Vec<String>,
    /// How many there are.
    #[serde(default)]
    pub count: usize,
    /// It was taken back that they were put back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

/// What became of one file behind a point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trail {
    /// How it was at that point.
    pub was: State,
    /// How the last step may have left it.
    now: Vec<State>,
    is_whole: bool,
}

impl Trail {
    fn begin(change: &Change, is_sure: bool) -> Self {
        let now = if is_sure { vec![change.after] } else { vec![change.before, change.after] };
        Self { was: change.before, now, is_whole: true }
    }

    fn follow(&mut self, change: &Change, is_sure: bool) {
        let (begins, ends) = (self.may_be(change.before), self.may_be(change.after));
        // What leads to where it is already is the same change, seen twice by two who worked side by side.
        self.is_whole &= begins || ends;
        match (begins, is_sure) {
            (true, false) => self.now.push(change.after),
            (false, false) if ends => {}
            (false, false) => self.now = vec![change.before, change.after],
            (_, true) => self.now = vec![change.after],
        }
    }

    /// Whether what is there now was left there by the steps alone, so that nobody else's work is lost with it.
    pub fn leads_to(&self, now: State) -> bool {
        // Whoever closes a file to everybody says that it is theirs, unless a step says that it has done so.
        let is_closed = now.mode().is_some_and(|mode| mode & WRITE == 0);
        let is_said = || self.now.iter().any(|known| known.fits(&now) && known.mode() == now.mode());
        self.is_whole && self.may_be(now) && (!is_closed || is_said())
    }

    /// Whether the steps have left exactly this there, and said so.
    pub fn names(&self, now: State) -> bool {
        self.is_whole && self.now.contains(&now)
    }

    fn may_be(&self, state: State) -> bool {
        self.now.iter().any(|now| now.fits(&state))
    }
}

/// One change of one file, and whether it is known to have happened.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// The folder that the path lies beneath.
    pub root: &'a str,
    /// What changed.
    pub change: &'a Change,
    /// Whether it is known to have happened; if not, it may have.
    pub is_sure: bool,
}

/// The trail of every file that these steps, in order, have touched, by root and path.
pub fn trails<'a>(steps: impl IntoIterator<Item = Step<'a>>) -> BTreeMap<(String, String), Trail> {
    let mut trails: BTreeMap<(String, String), Trail> = BTreeMap::new();
    for Step { root, change, is_sure } in steps {
        let key = (root.to_owned(), change.path.clone());
        match trails.get_mut(&key) {
            Some(trail) => trail.follow(change, is_sure),
            None => drop(trails.insert(key, Trail::begin(change, is_sure))),
        }
    }
    trails
}

/// What a look has found of a file without what others, in order, did to it meanwhile and have noted themselves, each with
/// whether that is known to have happened. Nothing, if that is all there was: one change is one step, where it was made.
pub fn rebased<'a>(found: &Change, others: impl IntoIterator<Item = (&'a Change, bool)>) -> Option<Change> {
    let mut now = found.before;
    for (other, is_sure) in others {
        if other.before.fits(&now) && (is_sure || other.after.fits(&found.after)) {
            now = other.after;
        }
    }
    (!now.fits(&found.after)).then(|| Change { path: found.path.clone(), before: now, after: found.after })
}

/// What happened to one file at one entry of the log.
#[derive(Debug, Clone, Copy)]
pub struct Touch<'a> {
    /// The entry.
    pub seq: u64,
    /// The folder that the path lies beneath.
    pub root: &'a str,
    /// Which file.
    pub path: &'a str,
    /// It was put back to what it was behind this entry; if not, a step has changed it.
    pub behind: Option<u64>,
}

/// The steps of one file, each with the one that it stands on, and which was the topmost when.
#[derive(Debug, Default)]
struct Pile {
    steps: Vec<(u64, Option<usize>)>,
    tops: Vec<(u64, Option<usize>)>,
}

impl Pile {
    fn add(&mut self, seq: u64, behind: Option<u64>) {
        let top = match behind {
            Some(behind) => self.tops.iter().rev().find(|(at, _)| *at <= behind).and_then(|(_, top)| *top),
            None => {
                self.steps.push((seq, self.tops.last().and_then(|(_, top)| *top)));
                self.steps.len().checked_sub(1)
            }
        };
        self.tops.push((seq, top));
    }

    fn standing(&self) -> Vec<u64> {
        let step = |at: Option<usize>| at.and_then(|at| self.steps.get(at));
        let top = step(self.tops.last().and_then(|(_, top)| *top));
        std::iter::successors(top, |(_, below)| step(*below)).map(|(seq, _)| *seq).collect()
    }
}

/// The steps of every file, by root and path, whose work is still in place, newest first. Putting a file back leaves those that
/// were in place at that point: so taking that back brings back the ones that it took away.
pub fn standing<'a>(touches: impl IntoIterator<Item = Touch<'a>>) -> BTreeMap<(String, String), Vec<u64>> {
    let mut piles: BTreeMap<(String, String), Pile> = BTreeMap::new();
    for Touch { seq, root, path, behind } in touches {
        piles.entry((root.to_owned(), path.to_owned())).or_default().add(seq, behind);
    }
    piles.into_iter().map(|(file, pile)| (file, pile.standing())).collect()
}

/// Whether a call may change files that it does not name one by one, so that somebody has to look before and after.
pub fn is_opaque(class: Class, action: &Action) -> bool {
    match action.deed {
        Deed::Execute => class == Class::Opaque && !action.line.as_ref().is_some_and(only_looks),
        Deed::Merge => true,
        _ => false,
    }
}

/// Whether a command line only looks, as far as its programs are known.
fn only_looks(line: &Line) -> bool {
    let looks = |part: &Part| {
        let facts = program::look(&part.argv);
        let reads = |effect: &Effect| matches!(effect, Effect::Read(_) | Effect::History);
        let is_written = part.flows.iter().any(|flow| matches!(flow.to, End::Write(_) | End::Append(_)));
        facts.is_whole && facts.effects.iter().all(reads) && part.env.is_empty() && !is_written
    };
    matches!(line, Line::Plain(parts) if parts.iter().all(looks))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> State {
        State::File { hash: Hash::of(text), program: false, private: false, mode: None }
    }

    #[test]
    fn who_may_read_a_file_is_known_and_makes_it_no_other() {
        let old = r#"{"file":{"hash":"HASH","program":true}}"#.replace("HASH", &Hash::of("1").to_string());
        let old: State = serde_json::from_str(&old).unwrap();
        let secret = State::File { hash: Hash::of("1"), program: true, private: true, mode: None };
        assert_eq!(old, secret);
        assert!(matches!(old, State::File { private: false, .. }), "an old step does not say");
        let told: State = serde_json::from_str(&serde_json::to_string(&secret).unwrap()).unwrap();
        assert!(matches!(told, State::File { private: true, .. }));
    }

    #[test]
    fn other_permissions_alone_are_a_change_where_they_are_known() {
        let (open, closed) = (file("1").with_mode(Some(0o644)), file("1").with_mode(Some(0o640)));
        assert!(open == closed && !open.fits(&closed) && open.fits(&file("1")) && file("1").fits(&closed));
        assert!(file("2").with_mode(Some(0o644)) != open && State::Gone.with_mode(Some(0o644)).fits(&State::Gone));
        let told: State = serde_json::from_str(&serde_json::to_string(&closed).unwrap()).unwrap();
        assert_eq!(told.mode(), Some(0o640));

        let changed = trail(&[(change(open, closed), true)]);
        assert!(changed.leads_to(closed) && !changed.leads_to(open), "somebody has opened it again");
        assert_eq!(changed.was.mode(), Some(0o644));
        assert!(rebased(&change(open, closed), []).is_some());
        assert_eq!(rebased(&change(open, closed), [(&change(open, closed), true)]), None);

        let shut = |text: &str| file(text).with_mode(Some(0o444));
        let made = trail(&[(change(State::Gone, file("1")), true)]);
        assert!(
            made.leads_to(open) && !made.leads_to(shut("1")),
            "somebody else has closed it, which is to say: hands off"
        );
        assert!(trail(&[(change(open, shut("1")), true)]).leads_to(shut("1")));

        let runs = State::File { hash: Hash::of("1"), program: true, private: false, mode: None };
        assert_eq!(file("2").in_stead_of(closed).mode(), Some(0o640));
        assert_eq!((runs.in_stead_of(closed).mode(), closed.in_stead_of(State::Gone).mode()), (None, None));
    }

    #[test]
    fn a_large_file_is_told_from_another_where_its_numbers_are_known() {
        let bulky = |print: &str| State::Bulky { size: 9, print: Hash::of(print) };
        let made = trail(&[(change(State::Gone, bulky("1")), true)]);
        assert!(made.leads_to(bulky("1")) && made.names(bulky("1")) && !made.leads_to(bulky("2")));
        let old = trail(&[(change(State::Gone, State::Large), true)]);
        assert!(old.leads_to(bulky("1")) && !old.names(bulky("1")), "an old step does not say which");
        let told: State = serde_json::from_str("\"large\"").unwrap();
        assert_eq!((told, bulky("1").elsewhere()), (State::Large, State::Large));
    }

    fn change(before: State, after: State) -> Change {
        Change { path: "a".into(), before, after }
    }

    fn trail(steps: &[(Change, bool)]) -> Trail {
        let steps = steps.iter().map(|(change, is_sure)| Step { root: "/p", change, is_sure: *is_sure });
        trails(steps).remove(&("/p".to_owned(), "a".to_owned())).unwrap()
    }

    #[test]
    fn a_trail_is_whole_only_as_long_as_nobody_else_walks_on_it() {
        let (one, two, three) = (file("1"), file("2"), file("3"));
        let whole = trail(&[(change(State::Gone, one), true), (change(one, two), true)]);
        assert_eq!(whole.was, State::Gone);
        assert!(whole.leads_to(two));
        assert!(!whole.leads_to(one) && !whole.leads_to(three) && !whole.leads_to(State::Gone));

        let broken = trail(&[(change(State::Gone, one), true), (change(two, three), true)]);
        assert!(!broken.leads_to(three), "somebody made `2` of `1`, and that would be lost");
    }

    #[test]
    fn a_step_that_may_not_have_happened_leads_to_both() {
        let (one, two, three) = (file("1"), file("2"), file("3"));
        let unsure = trail(&[(change(one, two), false)]);
        assert!(unsure.leads_to(one) && unsure.leads_to(two) && !unsure.leads_to(three));
        let again = trail(&[(change(one, two), false), (change(one, three), true)]);
        assert!(again.leads_to(three) && !again.leads_to(two));
        let refused = trail(&[(change(one, two), true), (change(three, one), false)]);
        assert!(!refused.leads_to(three), "it was refused because somebody had made `3` of `2`");
    }

    #[test]
    fn one_change_that_two_saw_is_one() {
        let (one, two) = (file("1"), file("2"));
        let twice = trail(&[(change(one, two), true), (change(one, two), true)]);
        assert!(twice.leads_to(two));
    }

    #[test]
    fn what_others_have_noted_is_not_seen_again() {
        let (one, two, three) = (file("1"), file("2"), file("3"));
        let (first, second, back) = (change(one, two), change(two, three), change(two, one));
        let seen = |found: Change, others: &[(&Change, bool)]| {
            rebased(&found, others.iter().copied()).map(|left| (left.before, left.after))
        };
        assert_eq!(seen(change(one, two), &[]), Some((one, two)));
        assert_eq!(seen(change(one, two), &[(&first, true)]), None);
        assert_eq!(seen(change(one, two), &[(&first, false)]), None, "it may have been, and then it was that");
        assert_eq!(seen(change(one, three), &[(&first, true)]), Some((two, three)), "the rest is its own");
        assert_eq!(seen(change(one, three), &[(&first, false)]), Some((one, three)));
        assert_eq!(seen(change(one, three), &[(&first, true), (&second, true)]), None);
        assert_eq!(seen(change(two, one), &[(&first, true), (&back, true)]), None, "that was put back");
        assert_eq!(seen(change(two, three), &[(&first, true)]), Some((two, three)), "that was before it looked");
    }

    #[test]
    fn what_was_put_back_stands_no_more_until_that_is_taken_back() {
        let stand = |touches: &[(u64, Option<u64>)]| {
            let touch =
                |(seq, behind): &(u64, Option<u64>)| Touch { seq: *seq, root: "/p", path: "a", behind: *behind };
            standing(touches.iter().map(touch)).remove(&("/p".to_owned(), "a".to_owned())).unwrap()
        };
        let steps = [(2, None), (5, None)];
        assert_eq!(stand(&steps), [5, 2]);
        let back = [&steps[..], &[(7, Some(4))]].concat();
        assert_eq!(stand(&back), [2]);
        let all = [&back[..], &[(8, Some(1))]].concat();
        assert_eq!(stand(&all), [0_u64; 0]);
        let undone = [&all[..], &[(9, Some(7))]].concat();
        assert_eq!(stand(&undone), [2], "taking the last one back brings back what it took away");
        let again = [&undone[..], &[(11, None), (12, Some(6))]].concat();
        assert_eq!(stand(&again), [5, 2], "any point can be gone to, forwards, too");
    }

    #[test]
    fn only_what_may_change_something_is_looked_at() {
        let run = |words: &str| {
            let argv: Vec<String> = words.split(' ').map(str::to_owned).collect();
            let action = Action { deed: Deed::Execute, line: Some(Line::of(&argv)), ..Action::read(words) };
            is_opaque(Class::Opaque, &action)
        };
        for (words, want) in [("ls -l", false), ("cat a", false), ("rm -r a", true), ("make", true), ("touch a", true)]
        {
            assert_eq!(run(words), want, "{words}");
        }
        assert!(!is_opaque(Class::Idempotent, &Action { deed: Deed::Write, ..Action::read("a") }));
    }
}
