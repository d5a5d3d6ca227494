//! The chat as plain lines: no raw mode, no colours, nothing that moves.
//!
//! Every line of the input is a message (one that ends in `\` goes on in the next), answers are printed as they come,
//! everything else is one line each. Questions are asked on the same terminal; without one nobody can be asked, and
//! the team is told so. At the end of the input what was said is finished first.

mod ask;

use std::io::{self, BufRead, IsTerminal, Write};

use max_team_core::id::QuestionId;
use max_team_runtime::{Notice, now_ms};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::link::{Done, Link};
use super::rows::{Look, Row};
use super::session::Session;
use super::slash::{self, Slash};
use super::text::clean;
use super::theme::Theme;
use super::transcript::Item;
use super::{ExitReason, Left};

/// Lines are printed as long as they are: whoever shows them wraps them.
const COLUMNS: usize = 10_000;
/// Lines that are read ahead.
const LINES_AHEAD: usize = 1;

/// Everything is answered yes beforehand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Yes {
    /// No instead: the user said so on standard input.
    pub(super) refuses: bool,
    /// But for the first plan, about which this is said.
    pub(super) objection: Option<String>,
}

pub(super) async fn run(
    session: Session,
    begun: Vec<Item>,
    link: Link,
    notices: mpsc::Receiver<Notice>,
    yes: Option<Yes>,
    shutdown: CancellationToken,
) -> anyhow::Result<Left> {
    let can_ask = yes.is_none() && io::stdin().is_terminal();
    let lines = if yes.is_some() { mpsc::channel(LINES_AHEAD).1 } else { read_lines() };
    let mut plain = Plain { yes, ..Plain::new(session, io::stdout(), can_ask) };
    let reason = match plain.talk(begun, link, notices, lines, shutdown).await {
        Ok(reason) => plain.part().map(|()| reason).map_err(Into::into),
        error => error,
    };
    let reason = match reason {
        // Whoever read us has gone.
        Err(error) if is_broken_pipe(&error) => ExitReason::Hangup,
        reason => reason?,
    };
    Ok(Left { reason, session: plain.session.id(), plan: plain.session.plan().cloned() })
}

struct Plain<W> {
    session: Session,
    out: W,
    can_ask: bool,
    /// Everything was answered yes beforehand (`--yes`); nothing is read.
    yes: Option<Yes>,
    /// Lines that end in a backslash, until one does not.
    pending: String,
    /// The question that was put to the user.
    asked: Option<QuestionId>,
    in_text: bool,
    /// What others did in the middle of a line.
    held: Vec<Row>,
    /// Whether nothing stands on the line yet.
    at_line_start: bool,
    /// Whether the prompt stands there, and nothing behind it.
    prompted: bool,
    /// Whether the user's own words are printed.
    echo: bool,
    eof: bool,
}

impl<W: Write> Plain<W> {
    fn new(session: Session, out: W, can_ask: bool) -> Self {
        Self {
            session,
            out,
            can_ask,
            yes: None,
            pending: String::new(),
            asked: None,
            in_text: false,
            held: Vec::new(),
            at_line_start: true,
            prompted: false,
            echo: true,
            eof: false,
        }
    }

    async fn talk(
        &mut self,
        begun: Vec<Item>,
        mut link: Link,
        mut notices: mpsc::Receiver<Notice>,
        mut lines: mpsc::Receiver<io::Result<String>>,
        shutdown: CancellationToken,
    ) -> anyhow::Result<ExitReason> {
        self.print(begun)?;
        self.echo = false;
        loop {
            self.questions()?;
            link.send(self.session.take_acts());
            if self.eof && self.session.is_over() && link.is_empty() {
                return Ok(ExitReason::Eof(self.session.last().cloned()));
            }
            if !self.eof && self.session.is_over() && link.is_empty() {
                self.prompt()?;
            }
            // A pipe is read as fast as it is answered; a person may type ahead.
            let listens = !self.eof && (self.can_ask || (self.session.is_over() && link.is_empty()));
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return Ok(ExitReason::Shutdown),
                done = link.next() => {
                    // Another session's words are not before anybody's eyes.
                    self.echo = matches!(done, Done::Opened { .. });
                    let items = self.session.done(done, now_ms());
                    self.print(items)?;
                    self.echo = false;
                    // The error has said why; the words are still in the scrollback of whoever typed them.
                    self.session.take_returned();
                }
                notice = notices.recv() => match notice {
                    Some(notice) => self.notice(&notice, now_ms())?,
                    None => return Ok(ExitReason::Shutdown),
                },
                line = lines.recv(), if listens => match line {
                    Some(line) => if self.line(&line?)? {
                        return Ok(ExitReason::Quit);
                    },
                    None => self.eof = true,
                },
            }
        }
    }

    /// The last line: where a plan that is left stands.
    fn part(&mut self) -> io::Result<()> {
        let lang = self.session.lang;
        let Some(standing) = self.session.plan().and_then(|plan| lang.standing(plan)) else { return Ok(()) };
        self.end_line()?;
        if self.session.is_recorded() {
            return Ok(());
        }
        writeln!(self.out, "{standing}")?;
        writeln!(self.out, "{} max-team -r {}", lang.come_back(), self.session.id())
    }

    /// One line of the input. Returns whether it asks to leave.
    fn line(&mut self, line: &str) -> io::Result<bool> {
        (self.at_line_start, self.prompted) = (true, false);
        if let Some(question) = self.asked.filter(|_| !self.is_stopped_by(line)) {
            self.answer(question, line)?;
            return Ok(false);
        }
        if let Some(begun) = line.strip_suffix('\\') {
            self.pending.push_str(begun);
            self.pending.push('\n');
            return Ok(false);
        }
        let text = std::mem::take(&mut self.pending) + line;
        match slash::parse(&text) {
            _ if text.trim().is_empty() => {}
            Some(Ok(Slash::Quit)) => return Ok(true),
            Some(Ok(command)) => {
                let items = self.session.slash(command);
                self.print(items)?;
            }
            Some(Err(unknown)) if !self.session.has_skill(&unknown.name) => {
                let words = self.session.lang.unknown_command(&unknown.name, unknown.nearest);
                self.print(vec![Item::Row(Row::Note(words))])?;
            }
            Some(Err(_)) | None => {
                let items = self.session.speak(text, self.session.while_busy());
                self.print(items)?;
            }
        }
        Ok(false)
    }

    /// Hears a notice. What others do does not cut a line of the lead's in two.
    fn notice(&mut self, notice: &Notice, now_ms: i64) -> io::Result<()> {
        let was_copying = self.session.copies().is_some();
        let mut items = self.session.notice(notice, now_ms);
        // There is no row here that could change: it is said once.
        let copies = self.session.copies().filter(|_| !was_copying);
        items.extend(copies.map(|(made, of)| Item::Row(Row::Note(self.session.lang.making_copies(made, of)))));
        let is_others = matches!(notice, Notice::Event { from, .. } if !from.lead);
        if !(is_others && self.in_text) {
            return self.print(items);
        }
        self.held.extend(items.into_iter().filter_map(|item| match item {
            Item::Row(row) | Item::Minor(row) => Some(row),
            Item::Text(_) | Item::TextEnd => None,
        }));
        if self.at_line_start {
            self.held_rows()?;
            self.out.flush()?;
        }
        Ok(())
    }

    fn print(&mut self, items: Vec<Item>) -> io::Result<()> {
        for item in items {
            match item {
                Item::Text(words) => {
                    let words = if self.in_text { &words } else { words.trim_start_matches('\n') };
                    if !self.in_text {
                        self.end_line()?;
                    }
                    write!(self.out, "{}", clean(words))?;
                    self.in_text = true;
                    self.at_line_start = words.ends_with('\n') || (words.is_empty() && self.at_line_start);
                    if self.at_line_start {
                        self.held_rows()?;
                    }
                }
                Item::TextEnd => self.end_line()?,
                // Whoever typed or piped it has it before their eyes.
                Item::Row(Row::Said(_)) if !self.echo => {}
                Item::Row(row) | Item::Minor(row) => {
                    self.end_line()?;
                    self.row(&row)?;
                }
            }
        }
        self.out.flush()
    }

    fn row(&mut self, row: &Row) -> io::Result<()> {
        let look = Look { columns: COLUMNS, theme: Theme { color: false }, lang: self.session.lang };
        row.lines(look).iter().try_for_each(|line| writeln!(self.out, "{}", line.to_string().trim_end()))
    }

    fn end_line(&mut self) -> io::Result<()> {
        (self.in_text, self.prompted) = (false, false);
        if !std::mem::replace(&mut self.at_line_start, true) {
            writeln!(self.out)?;
        }
        self.held_rows()
    }

    /// What others did while a line was being written; the text goes on after it as it would have without.
    fn held_rows(&mut self) -> io::Result<()> {
        std::mem::take(&mut self.held).iter().try_for_each(|row| self.row(row))
    }

    fn prompt(&mut self) -> io::Result<()> {
        if self.can_ask && !self.prompted && self.asked.is_none() {
            self.end_line()?;
            write!(self.out, "> ")?;
            (self.at_line_start, self.prompted) = (false, true);
            self.out.flush()?;
        }
        Ok(())
    }
}

/// Reads lines on a thread of its own: a read of standard input cannot be cancelled, and the program must be able to
/// end while somebody could still type. Nobody waits for the thread; it ends with the program.
fn read_lines() -> mpsc::Receiver<io::Result<String>> {
    let (sender, receiver) = mpsc::channel(LINES_AHEAD);
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let failed = line.is_err();
            if sender.blocking_send(line).is_err() || failed {
                return;
            }
        }
    });
    receiver
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use max_team_core::event::{Event, QuestionAsked};
    use max_team_core::mates::AgentEnded;
    use max_team_core::plan::event::{PlanAsked, Say};
    use max_team_core::plan::{Draft, Task};
    use max_team_core::policy::{Action, Answer, By, Class, Memory, Recourse, Settled};
    use max_team_runtime::{Basis, Delta, Origin, preview};
    use uuid::Uuid;

    use super::super::link::Act;
    use super::super::panel::PLACE;
    use super::super::tests::house::team;
    use super::super::tests::stage;
    use super::ask::NOBODY;
    use super::*;
    use max_team_workspace::words::Lang;

    fn plain(can_ask: bool) -> Plain<Vec<u8>> {
        let opened = stage::opened();
        let session = Session::new(Lang::En, "Max".into(), stage::models(), &opened);
        Plain { echo: false, ..Plain::new(session, Vec::new(), can_ask) }
    }

    impl Plain<Vec<u8>> {
        fn event(&mut self, event: Event) {
            let notice =
                Notice::Event { session: stage::session_id(), from: stage::lead(), at_ms: 0, event: Arc::new(event) };
            let items = self.session.notice(&notice, 0);
            self.print(items).unwrap();
        }

        fn delta(&mut self, text: &str) {
            self.piece(1, text);
        }

        /// A piece of the model call of this number.
        fn piece(&mut self, call: u32, text: &str) {
            let (session, from, delta) = (stage::session_id(), stage::lead(), Delta::Text(text.into()));
            let items = self.session.notice(&Notice::Delta { session, from, call, delta }, 0);
            self.print(items).unwrap();
        }

        fn asks(&mut self) {
            self.event(Event::QuestionAsked(QuestionAsked {
                question: QuestionId::new(Uuid::from_u128(7)),
                key: "1.0".into(),
                tool: "edit_file".into(),
                action: stage::edit("a.txt", "@@ -1 +1 @@\n-x\n+y\u{1b}[2J\n"),
                class: Class::Idempotent,
                rule: "permission mode `default`".into(),
                memory: Memory::Rules(vec!["Edit".into()]),
                recourse: Recourse::default(),
            }));
            self.questions().unwrap();
        }

        fn answers(&mut self) -> Vec<Answer> {
            let answer = |act| if let Act::Answer { answer, .. } = act { Some(answer) } else { None };
            self.session.take_acts().into_iter().filter_map(answer).collect()
        }

        fn printed(&self) -> &str {
            std::str::from_utf8(&self.out).unwrap()
        }
    }

    #[test]
    fn lines_are_messages_and_a_backslash_goes_on() {
        let mut plain = plain(false);
        for line in ["one \\", "two", "", "/nope", "three"] {
            assert!(!plain.line(line).unwrap());
        }
        assert!(plain.line("/quit").unwrap());
        let said: Vec<String> = plain
            .session
            .take_acts()
            .into_iter()
            .filter_map(|act| if let Act::Say { text, .. } = act { Some(text) } else { None })
            .collect();
        assert_eq!(said, ["one \ntwo", "three"]);
        assert!(plain.printed().contains("There is no command /nope"));
    }

    /// A recording cannot answer: a question gets a note, and the story goes on as it was recorded.
    #[test]
    fn what_is_written_in_a_demo_goes_nowhere() {
        let mut plain = plain(true);
        plain.session.set_recorded(true);
        for line in ["what is this?", "@alice hello", "@team stop that"] {
            assert!(!plain.line(line).unwrap());
            assert!(plain.session.take_acts().is_empty(), "{line}");
            assert!(plain.printed().contains("it cannot answer what you write"), "{}", plain.printed());
            plain.out.clear();
        }
    }

    #[test]
    fn words_come_as_they_stream_and_rows_on_lines_of_their_own() {
        let mut plain = plain(false);
        plain.event(stage::started("hi"));
        plain.event(stage::intent(1, 1));
        plain.delta("\n\nSome **wo");
        plain.delta("rds**\u{1b}[31m");
        plain.event(stage::answered(1, "\n\nSome **words**\u{1b}[31m"));
        plain.event(stage::ended(max_team_core::event::End::Rounds));
        let want = "Some **words**␛[31m\n■ The limit of rounds for one turn was reached. /continue goes on.\n";
        assert!(plain.printed().starts_with(want), "{}", plain.printed());
    }

    /// A quick model's piece can come before the event of its call, while another turn is still shown.
    #[test]
    fn a_piece_that_comes_before_its_call_is_shown_with_its_own_answer() {
        let mut plain = plain(false);
        for (call, text) in [(1, "One."), (2, "Two. Three.")] {
            plain.event(stage::started("hi"));
            plain.event(stage::intent(call, 1));
            plain.piece(call, text);
            plain.piece(2, "Two.");
            plain.event(stage::answered(call, text));
            plain.event(stage::ended(max_team_core::event::End::Answered));
        }
        let said: Vec<&str> = plain.printed().lines().filter(|line| line.ends_with('.')).collect();
        assert_eq!(said, ["One.", "Two. Three."], "{}", plain.printed());
    }

    #[test]
    fn what_others_do_takes_no_empty_line_out_of_a_text() {
        let mate = Arc::new(Origin::named("leo"));
        // It comes within a line, or after one.
        for (before, after) in [("One", ".\n"), ("One.\n", "")] {
            let mut plain = plain(false);
            plain.event(stage::started("hi"));
            plain.event(stage::intent(1, 1));
            plain.delta(before);
            let event = Arc::new(Event::AgentEnded(AgentEnded {
                session: stage::session_id(),
                name: "leo".into(),
                by: "max".into(),
                reason: String::new(),
                forced: false,
            }));
            let notice = Notice::Event { session: stage::session_id(), from: mate.clone(), at_ms: 0, event };
            plain.notice(&notice, 0).unwrap();
            plain.delta(after);
            plain.delta("\nTwo.");
            let [one, row, empty, two] = plain.printed().lines().collect::<Vec<_>>().try_into().unwrap();
            assert!(one == "One." && row.contains("leo has ended"), "{}", plain.printed());
            assert_eq!((empty, two), ("", "Two."));
        }
    }

    /// A plan is proposed; returns what asks about it.
    fn proposes(plain: &mut Plain<Vec<u8>>) -> QuestionId {
        let task = Task { id: "a".into(), agent: "leo".into(), description: "do it".into(), ..Task::default() };
        let draft = Draft { goal: "g".into(), tasks: vec![task], ..Draft::default() };
        let shown = preview(&team(), Path::new("."), draft, &Basis::default()).unwrap();
        let id = shown.id().unwrap();
        let from = Arc::new(Origin { plan: Some(id), ..Origin::named("plan") });
        let (question, about) = shown.asked().next().map(|(question, about)| (question, about.clone())).unwrap();
        let proposed = Event::PlanProposed(shown.proposed().unwrap().clone());
        for event in [proposed, Event::PlanAsked(PlanAsked { question, about })] {
            let (session, event) = (stage::session_id(), Arc::new(event));
            let items = plain.session.notice(&Notice::Event { session, from: from.clone(), at_ms: 0, event }, 0);
            plain.print(items).unwrap();
        }
        plain.questions().unwrap();
        question
    }

    #[test]
    fn a_plan_waits_where_nobody_can_be_asked() {
        let mut plain = plain(false);
        let question = proposes(&mut plain);
        plain.part().unwrap();
        assert!(plain.printed().contains("· a (leo): do it") && plain.printed().contains("waits for a person"));
        assert!(plain.printed().contains("come back with max-team -r "), "{}", plain.printed());
        assert!(plain.session.take_acts().iter().all(|act| !matches!(act, Act::Decide { .. })));
        assert!(plain.session.questions.all().any(|waiting| waiting.id == question));
    }

    #[test]
    fn a_yes_beforehand_may_object_once() {
        let mut plain = plain(false);
        plain.yes = Some(Yes { refuses: false, objection: Some("too much".into()) });
        for want in [Say::Changes("too much".into()), Say::Approve] {
            proposes(&mut plain);
            let acts = plain.session.take_acts();
            let said =
                acts.into_iter().find_map(|act| if let Act::Decide { say, .. } = act { Some(say) } else { None });
            assert_eq!(said, Some(want));
            assert!(plain.session.questions.is_answering() && !plain.session.is_over());
        }
    }

    #[test]
    fn a_line_says_what_becomes_of_a_copy() {
        let table = [
            ("y", Some(Settled::Taken)),
            ("N", Some(Settled::Dropped)),
            ("l", Some(Settled::Left)),
            ("a", None),
            ("n because", None),
            ("", None),
        ];
        for (line, want) in table {
            let mut plain = plain(true);
            plain.event(stage::merges("1.0", "@@ -1 +1 @@\n-x\n+y\n"));
            plain.questions().unwrap();
            plain.line(line).unwrap();
            assert_eq!(plain.answers().first().map(Answer::settled), want, "{line}");
            let printed = plain.printed();
            assert!(printed.contains("has changes for you, in a copy of the project (agt_"), "{printed}");
            assert!(printed.contains("  +y\nTake them? y = yes, n = drop them"), "{printed}");
        }
        let mut plain = plain(false);
        plain.event(stage::merges("1.0", ""));
        plain.questions().unwrap();
        assert_eq!(plain.answers().first().map(Answer::settled), Some(Settled::Left), "nobody is here");
    }

    #[test]
    fn a_line_decides_about_a_plan() {
        let table = [
            ("y", Some(Say::Approve)),
            ("1", Some(Say::FirstWave)),
            ("c split it", Some(Say::Changes("split it".into()))),
            ("N too dear", Some(Say::Reject("too dear".into()))),
            ("c", None),
            ("maybe", None),
            ("l", None),
        ];
        for (line, want) in table {
            let mut plain = plain(true);
            proposes(&mut plain);
            plain.line(line).unwrap();
            let acts = plain.session.take_acts();
            let said =
                acts.into_iter().find_map(|act| if let Act::Decide { say, .. } = act { Some(say) } else { None });
            assert_eq!(said, want, "{line}");
            assert_eq!(plain.session.questions.count(), usize::from(matches!(line, "c" | "maybe")), "{line}");
        }
    }

    #[test]
    fn without_a_terminal_nobody_is_asked() {
        let mut plain = plain(false);
        plain.event(stage::started("hi"));
        plain.asks();
        let answers = plain.answers();
        assert_eq!(answers.len(), 1);
        assert_eq!((answers[0].allow, &answers[0].by), (false, &By::Nobody(NOBODY.into())));
    }

    #[test]
    fn on_a_terminal_the_next_line_is_the_answer() {
        let mut plain = plain(true);
        plain.event(stage::started("hi"));
        plain.asks();
        assert!(plain.printed().contains("? Max wants to use edit_file a.txt"));
        assert!(plain.printed().contains("+y␛[2J"));
        plain.line("perhaps").unwrap();
        plain.questions().unwrap();
        assert!(plain.answers().is_empty());
        plain.line("N use tabs").unwrap();
        let answers = plain.answers();
        assert_eq!((answers[0].allow, answers[0].comment.as_str()), (false, "use tabs"));
        assert_eq!(answers[0].by, By::Person(PLACE.into()));
    }

    #[test]
    fn the_action_of_a_read_is_no_question() {
        let mut plain = plain(true);
        plain.event(stage::started("hi"));
        plain.event(stage::runs("1.0", "read_file", Action::read("a.txt")));
        plain.questions().unwrap();
        assert!(plain.answers().is_empty() && plain.asked.is_none());
    }
}
