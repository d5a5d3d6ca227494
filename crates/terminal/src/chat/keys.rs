//! What keys and pastes do to a chat: write, answer, search, interrupt, leave.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::super::details::{Pager, Scroll};
use super::super::dialog::DialogResult;
use super::super::question::QuestionKind;
use super::super::rows::Row;
use super::super::search::{Search, SearchStep};
use super::super::slash::{self, Slash};
use super::super::transcript::Item;
use super::super::view::draft_columns;
use super::{Chat, Hint, QUIET_MS, Wish, scene};
use max_team_workspace::config::choice::WhileBusy;

impl Chat {
    pub(in super::super) fn paste(&mut self, text: &str) {
        if self.pager.is_some() {
            return;
        }
        self.hint = None;
        self.history.settle();
        if let Some(search) = &mut self.search {
            return search.paste(text, &mut self.history);
        }
        let answers = self.writes_answer();
        if let Some(answer) = self.dialog.editor().filter(|_| answers) {
            return answer.insert(text);
        }
        self.was_a_message();
        self.typed_at_ms = self.now_ms;
        self.paste_into_draft(text);
        self.update_menu();
    }

    /// What follows a letter that has chosen an answer makes it the first of a message.
    fn was_a_message(&mut self) {
        if let Some(letter) = self.answering.chosen_by.take() {
            self.dialog.unchoose();
            self.editor.insert(letter.encode_utf8(&mut [0; 4]));
        }
    }

    pub(super) fn paste_into_draft(&mut self, text: &str) {
        let lang = self.session.lang;
        self.editor.paste(text, |lines| format!("{} {}", lang.pasted(), lang.lines(lines)));
    }

    pub(in super::super) fn key(&mut self, key: KeyEvent) -> Option<Wish> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        let hint = self.hint.take();
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('c') => return self.ctrl_c(hint),
                KeyCode::Char('l') => return Some(Wish::Redraw),
                KeyCode::Char('t') => {
                    self.board.toggle();
                    // The list may have been changed in another terminal.
                    self.session.list_changed();
                    return None;
                }
                KeyCode::Char('z') => return Some(Wish::Suspend),
                KeyCode::Char('o') => {
                    self.toggle_pager();
                    return None;
                }
                _ => {}
            }
        }
        if self.pager.is_some() {
            self.pager_key(key);
            return None;
        }
        if self.search.is_some() {
            self.search_key(key);
            return None;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        // Leaving is possible with an open question, which stays open.
        if control && key.code == KeyCode::Char('d') && self.editor.is_empty() && !self.writes_answer() {
            return Some(Wish::Leave);
        }
        if self.dialog.is_modal() || (self.is_for_question(key) && !self.begins_a_message(key)) {
            self.question_key(key);
            return None;
        }
        self.was_a_message();
        let wish = self.draft_key(key, hint);
        self.update_menu();
        self.typed_at_ms = self.now_ms;
        // What was sent may be followed by more.
        self.is_cleared = self.editor.is_empty() && key.code != KeyCode::Enter;
        wish
    }

    /// Whether a key is for the question. After clearing the draft the user may choose at once; the answer is sent
    /// only with Enter.
    fn is_for_question(&self, key: KeyEvent) -> bool {
        let chooses = match key.code {
            KeyCode::Char(_) => self.is_cleared,
            KeyCode::Enter => self.answering.chosen_by.is_some(),
            // There is nothing that it could complete.
            KeyCode::Tab => true,
            _ => false,
        };
        let is_open = self.session.questions.first().is_some() && self.editor.is_empty() && self.answering.fits;
        self.question_has_focus() || (chooses && is_open && self.now_ms >= self.swapped_until_ms())
    }

    fn question_key(&mut self, key: KeyEvent) {
        let look = self.look();
        let Some(question) = self.session.questions.first() else { return };
        // Words may be on their way while the window became too small to see what they go along with.
        if key.code == KeyCode::Enter && !self.answering.fits {
            return;
        }
        let id = question.id;
        let asked_plan = match &question.matter {
            QuestionKind::Plan { plan, .. } => Some(*plan),
            QuestionKind::Permit(_) | QuestionKind::Words(_) => None,
        };
        self.dialog.face(Some(question));
        // Enter may be behind a letter that was for the question before: it answers once something is chosen here.
        let is_enter = key.code == KeyCode::Enter && !self.dialog.is_modal() && !self.dialog.wants_words();
        if is_enter && self.answering.is_swapped {
            self.hint = Some(Hint::AnotherQuestion);
            return;
        }
        self.answering.is_swapped = false;
        if self.answering.chosen_by.take().is_some() && key.code == KeyCode::Backspace {
            return self.dialog.unchoose();
        }
        let is_written = self.dialog.is_modal() || self.dialog.wants_words();
        self.answering.chosen_by =
            plain(key).filter(|letter| !is_written && self.dialog.takes(*letter, Some(question)));
        match self.dialog.key(key, question, scene(&self.session), look) {
            None => return,
            Some(DialogResult::Answer(answer)) => self.session.answer(id, answer),
            Some(DialogResult::Decide(say)) => self.session.decide(id, say),
            Some(DialogResult::Unchosen) => {
                self.hint = Some(Hint::Choose);
                return;
            }
            Some(DialogResult::Expand) => {
                let sheet = asked_plan.and_then(|plan| self.session.sheet(plan, true));
                self.show_beside(sheet.into_iter().collect());
                return;
            }
            Some(DialogResult::Later) => {
                let words = self.session.put_off(id);
                self.show(vec![Item::Row(Row::Note(words))]);
            }
        }
        self.dialog.face(self.session.questions.first());
        self.show_sheet();
    }

    /// A letter that chooses no answer is the first of a message: it goes to the draft, and so does what follows. Of two behind
    /// each other, both are.
    fn begins_a_message(&self, key: KeyEvent) -> bool {
        let first = self.session.questions.first();
        plain(key).is_some_and(|letter| self.answering.chosen_by.is_some() || !self.dialog.takes(letter, first))
    }

    fn draft_key(&mut self, key: KeyEvent, hint: Option<Hint>) -> Option<Wish> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            // The Enter was meant for the question that has just closed: the returned text is not sent before the user
            // has seen it in the draft.
            KeyCode::Enter if self.now_ms < self.answering.returned_at_ms.saturating_add_unsigned(QUIET_MS) => {}
            KeyCode::Enter => return self.enter(key.modifiers),
            KeyCode::Esc => self.esc(hint),
            KeyCode::Char('r') if control => self.search = Some(Search::default()),
            KeyCode::Char('p') if control => self.older(),
            KeyCode::Char('n') if control => self.newer(),
            KeyCode::Up | KeyCode::Down if self.menu.is_open() => self.menu.step(key.code == KeyCode::Down),
            KeyCode::Up => self.older(),
            KeyCode::Down => self.newer(),
            KeyCode::Tab => {
                if let Some(whole) = slash::complete(&self.editor.whole()) {
                    self.editor.set(&whole);
                } else if let Some((start, text)) = self.menu.chosen() {
                    self.editor.replace_from(start, &text);
                }
            }
            KeyCode::BackTab => self.session.next_mode(),
            _ => {
                if self.editor.key(key) {
                    self.history.settle();
                }
            }
        }
        None
    }

    /// Shows everything that the last turn did, or the chat again.
    fn toggle_pager(&mut self) {
        if self.pager.take().is_some() {
            return;
        }
        if self.session.details().is_empty() {
            let words = self.session.lang.nothing_to_expand().to_owned();
            return self.show(vec![Item::Row(Row::Note(words))]);
        }
        self.pager = Some(Pager::new());
    }

    fn pager_key(&mut self, key: KeyEvent) {
        let scroll = match key.code {
            KeyCode::Esc | KeyCode::Char('q') => {
                self.pager = None;
                return;
            }
            KeyCode::Up | KeyCode::Char('k') => Scroll::Lines(-1),
            KeyCode::Down | KeyCode::Enter | KeyCode::Char('j') => Scroll::Lines(1),
            KeyCode::PageUp | KeyCode::Char('b') => Scroll::Pages(-1),
            KeyCode::PageDown | KeyCode::Char(' ' | 'f') => Scroll::Pages(1),
            KeyCode::Home | KeyCode::Char('g') => Scroll::First,
            KeyCode::End | KeyCode::Char('G') => Scroll::Last,
            _ => return,
        };
        if let Some(pager) = &mut self.pager {
            pager.scroll(scroll);
        }
    }

    /// The draft has changed: search the completions of a mention at the cursor again.
    pub(super) fn update_menu(&mut self) {
        let (draft, cursor) = self.editor.draft();
        if self.menu.update(draft, cursor, self.session.teammates()) {
            self.session.list_paths();
        }
    }

    /// Whether the draft is a single letter that would answer the question which the window is too small for: it must
    /// not be sent to an agent.
    fn answers_unseen(&self) -> bool {
        let Some(question) = self.session.questions.first().filter(|_| !self.answering.fits) else { return false };
        let draft = self.editor.whole();
        let mut letters = draft.trim().chars();
        let letter = letters.next().filter(|_| letters.next().is_none());
        letter.is_some_and(|letter| self.dialog.takes(letter, Some(question)))
    }

    fn enter(&mut self, modifiers: KeyModifiers) -> Option<Wish> {
        let (shift, alt) = (modifiers.contains(KeyModifiers::SHIFT), modifiers.contains(KeyModifiers::ALT));
        let how = match self.session.while_busy() {
            _ if alt => WhileBusy::Interrupt,
            // Where Enter interrupts, this is the key that does not.
            WhileBusy::Interrupt if shift && self.session.is_busy() => WhileBusy::Steer,
            _ if shift => {
                self.editor.insert("\n");
                return None;
            }
            usual => usual,
        };
        if self.editor.continue_line() {
            return None;
        }
        if self.answers_unseen() {
            self.hint = Some(Hint::Enlarge);
            return None;
        }
        let text = self.editor.take();
        if text.trim().is_empty() {
            return None;
        }
        self.history.add(&text);
        match slash::parse(&text) {
            Some(Ok(Slash::Quit)) => return Some(Wish::Leave),
            Some(Ok(command)) => {
                let items = self.session.slash(command);
                self.show(items);
                self.show_sheet();
            }
            Some(Err(unknown)) if !self.session.has_skill(&unknown.name) => {
                let lang = self.session.lang;
                let words = format!("{} {}", lang.unknown_command(&unknown.name, unknown.nearest), lang.up_has_it());
                // It is not put back: what is written next is not behind it. Up has it.
                self.show(vec![Item::Row(Row::Note(words))]);
            }
            Some(Err(_)) | None => {
                let items = self.session.speak(text, how);
                self.show(items);
                self.take_back();
            }
        }
        None
    }

    fn esc(&mut self, hint: Option<Hint>) {
        if self.session.is_busy() {
            self.session.interrupt();
        } else if hint == Some(Hint::EscAgain) {
            self.editor.clear();
        } else if !self.editor.is_empty() {
            self.hint = Some(Hint::EscAgain);
        } else if self.session.is_stopped() {
            let items = self.session.slash(Slash::Stop(None));
            self.show(items);
        } else if self.session.is_team_at_work() || !self.session.background().is_empty() {
            self.hint = Some(Hint::TeamGoesOn);
        }
    }

    fn ctrl_c(&mut self, hint: Option<Hint>) -> Option<Wish> {
        if self.search.take().is_some() {
            return None;
        }
        // The first press stops the turn, the second leaves: what runs is parked.
        if self.session.is_busy() && hint != Some(Hint::CtrlCAgain) {
            self.session.interrupt();
            self.hint = Some(Hint::CtrlCAgain);
        } else if !self.editor.is_empty() && hint != Some(Hint::CtrlCAgain) {
            self.editor.clear();
            self.update_menu();
        } else if hint == Some(Hint::CtrlCAgain) {
            return Some(Wish::Leave);
        } else {
            self.hint = Some(Hint::CtrlCAgain);
        }
        None
    }

    fn older(&mut self) {
        if self.editor.is_empty() && self.session.take_back() {
            return;
        }
        if !self.editor.up(draft_columns(self.columns))
            && let Some(text) = self.history.older(&self.editor.whole())
        {
            self.editor.clear();
            self.paste_into_draft(&text);
        }
    }

    fn newer(&mut self) {
        if !self.editor.down(draft_columns(self.columns))
            && let Some(text) = self.history.newer()
        {
            self.editor.clear();
            self.paste_into_draft(&text);
        }
    }

    fn search_key(&mut self, key: KeyEvent) {
        let Some(search) = &mut self.search else { return };
        match search.key(key, &mut self.history) {
            SearchStep::Stay => {}
            SearchStep::Cancel => self.search = None,
            SearchStep::Take(found) => {
                self.search = None;
                if let Some(found) = found {
                    self.editor.clear();
                    self.paste_into_draft(&found);
                }
            }
        }
    }
}

/// The letter that a key writes, if it is one to write.
fn plain(key: KeyEvent) -> Option<char> {
    let KeyCode::Char(letter) = key.code else { return None };
    (!key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)).then_some(letter)
}
