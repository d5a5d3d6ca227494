//! Questions as plain lines: what is asked, and how the line that answers is read.
//!
//! Where nobody can be asked an agent is told so; a plan waits instead, since it can.

use std::io::{self, Write};

use max_team_core::id::QuestionId;
use max_team_core::plan::event::{About, Ruling, Say};
use max_team_core::policy::{Answer, By, Memory, Settled, Until};
use max_team_core::stop::is_stop;

use super::super::gate::{headline, unknown_member};
use super::super::panel::PLACE;
use super::super::question::{Matter, Permit, Question, Words};
use super::super::text::clean_line;
use super::Plain;

/// Why nobody was asked.
pub(super) const NOBODY: &str = "no terminal to ask on";
/// Who says yes beforehand.
const YES: &str = "`--yes`";
/// Who says no beforehand.
const STDIN: &str = "standard input";

impl<W: Write> Plain<W> {
    /// Puts the first question to the user, or answers for nobody.
    pub(super) fn questions(&mut self) -> io::Result<()> {
        while let Some(question) = self.session.questions.first().cloned() {
            let sheet = self.session.sheet_due();
            self.print(sheet.into_iter().collect())?;
            if self.can_ask && !self.eof {
                if self.asked != Some(question.id) {
                    self.asked = Some(question.id);
                    self.ask(&question)?;
                }
                return Ok(());
            }
            if self.yes.is_some() {
                self.ask(&question)?;
                self.say_beforehand(&question)?;
                continue;
            }
            self.say_for_nobody(&question)?;
        }
        self.asked = None;
        Ok(())
    }

    fn ask(&mut self, question: &Question) -> io::Result<()> {
        self.end_line()?;
        let lang = self.session.lang;
        let who = clean_line(&question.by.title(lang));
        let prompt = match &question.matter {
            Matter::Permit(permit) => {
                self.print_permit(&who, permit)?;
                if permit.merges { lang.plain_merge() } else { lang.plain_question() }
            }
            Matter::Words(words) => {
                self.print_words(&who, words)?;
                lang.plain_reply()
            }
            Matter::Plan { plan, about } => {
                let plan = self.session.plans().get(*plan).map(|known| &known.plan);
                writeln!(self.out, "? {}", headline(about, plan, lang))?;
                if let About::Failure { error, .. } = about {
                    writeln!(self.out, "  {}", clean_line(error))?;
                }
                match about {
                    About::Proposal => lang.plain_gate(),
                    About::Failure { .. } => lang.plain_failure(),
                    About::Rest | About::Start { .. } | About::Budget => lang.plain_go_on(),
                }
            }
        };
        write!(self.out, "{prompt}")?;
        self.at_line_start = false;
        self.out.flush()
    }

    fn print_permit(&mut self, who: &str, permit: &Permit) -> io::Result<()> {
        let lang = self.session.lang;
        let (tool, target) = (clean_line(&permit.tool), clean_line(&permit.target));
        let rule = match permit.rule.as_str() {
            "" => String::new(),
            rule => format!(" ({} {})", lang.because(), clean_line(&lang.told(rule))),
        };
        if permit.merges {
            writeln!(self.out, "? {who} {} ({target})", lang.has_changes())?;
        } else {
            writeln!(self.out, "? {who} {} {tool} {target}{rule}", lang.wants_to_use())?;
        }
        if !permit.memory.rules().is_empty() {
            let rules = clean_line(&permit.memory.rules().join(", "));
            writeln!(self.out, "  {} {rules}", lang.remembered_as())?;
        }
        for line in permit.preview.lines() {
            writeln!(self.out, "  {}", clean_line(line))?;
        }
        Ok(())
    }

    fn print_words(&mut self, who: &str, words: &Words) -> io::Result<()> {
        writeln!(self.out, "? {who} {}: {}", self.session.lang.asks(), clean_line(&words.question))?;
        for (index, option) in words.options.iter().enumerate() {
            writeln!(self.out, "  {}. {}", index + 1, clean_line(option))?;
        }
        Ok(())
    }

    /// Gives the answer that was given beforehand.
    fn say_beforehand(&mut self, question: &Question) -> io::Result<()> {
        let refuses = self.yes.as_ref().is_some_and(|yes| yes.refuses);
        let (source, by) =
            if refuses { (STDIN, By::Person(STDIN.to_owned())) } else { ("--yes", By::Rule(YES.to_owned())) };
        let (answer, shown) = match &question.matter {
            Matter::Permit(_) if refuses => (Answer::new(false, by), "n (standard input)"),
            Matter::Permit(_) => (Answer::new(true, by), "y (--yes)"),
            // A yes is no answer to this.
            Matter::Words(_) => (Answer::new(false, by), "(--yes)"),
            Matter::Plan { about, .. } => {
                let mut objection = || self.yes.as_mut()?.objection.take();
                let say = match about {
                    _ if refuses => Say::Reject(String::new()),
                    About::Proposal => objection().map_or(Say::Approve, Say::Changes),
                    About::Rest | About::Start { .. } => Say::Approve,
                    About::Failure { .. } => Say::Rule(Ruling::GiveUp),
                    About::Budget => Say::Reject(String::new()),
                };
                writeln!(self.out, "{} ({source})", self.session.lang.said(&say))?;
                self.at_line_start = true;
                self.session.decide(question.id, say);
                return Ok(());
            }
        };
        writeln!(self.out, "{shown}")?;
        self.at_line_start = true;
        self.session.answer(question.id, answer);
        Ok(())
    }

    fn say_for_nobody(&mut self, question: &Question) -> io::Result<()> {
        if let Matter::Plan { .. } = question.matter {
            // What waits is said when the chat is over.
            self.session.questions.park(question.id);
            return Ok(());
        }
        let nobody = Answer::new(false, By::Nobody(NOBODY.into()));
        self.session.answer(question.id, nobody);
        Ok(())
    }

    /// Whether a line stops the turn instead of answering. Where words are asked for, any words are an answer.
    pub(super) fn is_stopped_by(&self, line: &str) -> bool {
        let asked = self.session.questions.first().map(|question| &question.matter);
        is_stop(line) && matches!(asked, Some(Matter::Permit(_)))
    }

    /// A line that answers the question that was put.
    pub(super) fn answer(&mut self, id: QuestionId, line: &str) -> io::Result<()> {
        self.asked = None;
        let Some(question) = self.session.questions.first().filter(|question| question.id == id).cloned() else {
            return Ok(());
        };
        let lang = self.session.lang;
        let unclear = match &question.matter {
            Matter::Permit(permit) => {
                let answer = if permit.merges { settled_by(line) } else { permit_of(line, &permit.memory) };
                match answer {
                    Some(answer) => {
                        self.session.answer(id, answer);
                        return Ok(());
                    }
                    None => lang.plain_unclear().to_owned(),
                }
            }
            Matter::Words(words) => {
                self.session.answer(id, words_of(line, words));
                return Ok(());
            }
            Matter::Plan { plan, .. } if matches!(line.trim(), "i" | "I" | "说明") => {
                let sheet = self.session.sheet(*plan, true);
                return self.print(sheet.into_iter().collect());
            }
            Matter::Plan { about, .. } => match self.said_of(line, about) {
                Ok(Some(say)) => {
                    self.session.decide(id, say);
                    return Ok(());
                }
                Ok(None) => {
                    self.session.questions.park(id);
                    lang.parked_hint().to_owned()
                }
                Err(words) => words,
            },
        };
        writeln!(self.out, "{unclear}")
    }

    /// What a line says about a plan; nothing for later.
    fn said_of(&self, line: &str, about: &About) -> Result<Option<Say>, String> {
        let lang = self.session.lang;
        let (word, words) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        let words = words.trim().to_owned();
        let retry = |agent| Say::Rule(Ruling::Retry { agent, model: None, note: String::new() });
        let unclear = || Err(lang.plain_gate_unclear().to_owned());
        let word = word.to_lowercase();
        Ok(Some(match (about, word.as_str()) {
            (_, "l" | "later" | "稍后") => return Ok(None),
            (About::Failure { .. }, word) => match word {
                "r" | "retry" => retry(None),
                "o" => match unknown_member(&words, self.session.team(), lang) {
                    Some(flaw) => return Err(flaw),
                    None => retry(Some(words)),
                },
                "s" | "skip" => Say::Rule(Ruling::Skip),
                "f" | "fixed" => Say::Rule(Ruling::Fixed),
                "a" | "accept" => Say::Rule(Ruling::Accept),
                "g" => Say::Rule(Ruling::GiveUp),
                _ => return unclear(),
            },
            (_, "y" | "yes" | "是") => Say::Approve,
            (_, "n" | "no" | "否") => Say::Reject(words),
            (About::Proposal, "1") => Say::FirstWave,
            (About::Proposal, "c") if !words.is_empty() => Say::Changes(words),
            _ => return unclear(),
        }))
    }
}

/// What a line says about changes that are in a copy.
fn settled_by(line: &str) -> Option<Answer> {
    let settled = match line.trim().to_lowercase().as_str() {
        "y" | "yes" | "是" => Settled::Taken,
        "n" | "no" | "否" => Settled::Dropped,
        "l" | "later" | "稍后" => Settled::Left,
        _ => return None,
    };
    Some(Answer::settling(settled, By::Person(PLACE.to_owned())))
}

fn permit_of(line: &str, memory: &Memory) -> Option<Answer> {
    let (word, comment) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
    let (allow, until) = match word.to_lowercase().as_str() {
        "y" | "yes" | "是" => (true, None),
        "t" | "task" => (true, Some(Until::Task)),
        "a" | "always" => (true, Some(Until::Session)),
        "r" | "repository" => (true, Some(Until::Repository)),
        "n" | "no" | "否" => (false, None),
        _ => return None,
    };
    if until.is_some() && *memory == Memory::Nothing {
        return None;
    }
    let (comment, answer) = (comment.trim().to_owned(), Answer::new(allow, By::Person(PLACE.to_owned())));
    Some(Answer { always: until.is_some(), until: until.unwrap_or_default(), comment, ..answer })
}

fn words_of(line: &str, words: &Words) -> Answer {
    let said = line.trim();
    let picked = said.parse::<usize>().ok().and_then(|number| words.options.get(number.checked_sub(1)?));
    let comment = picked.map_or_else(|| said.to_owned(), Clone::clone);
    let answer = Answer::new(!comment.is_empty(), By::Person(PLACE.to_owned()));
    Answer { comment, ..answer }
}
