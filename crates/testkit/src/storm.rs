//! Mail among many agents, while their program is killed again and again.
//!
//! A lead starts the agents, and tells them to begin when all are there; each writes so many messages to the others in turn,
//! half of them in the turn that then begins and half in later ones, several with each answer. What the model says follows
//! from the conversation alone, so a program that was killed may ask again. At the end the conversations themselves are the
//! proof: each message must stand in the input of its reader's turns once, and those of one writer in the order in which they
//! were written.

use std::collections::HashMap;
use std::fmt;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::record::Recorded;
use crate::reply::Reply;
use crate::script::Script;
use crate::server::ModelServer;

/// Calls in one answer of the lead's.
const STARTED_AT_ONCE: usize = 64;
/// Between two looks at whether it is time for a kill.
const LOOK: Duration = Duration::from_micros(200);
/// How long nothing may happen.
const SILENCE_MAX: Duration = Duration::from_secs(120);
/// Requests of an agent beside those that write messages: the ends of its turns.
const OTHER_REQUESTS: usize = 5;

#[derive(Clone, Copy, Debug)]
pub struct Storm {
    pub agents: usize,
    /// Messages, of all agents together.
    pub messages: usize,
    /// Messages that one answer writes.
    pub at_once: usize,
    pub kills: usize,
    /// The same seed kills after the same requests; what the program was at just then is up to the machine.
    pub seed: u64,
}

/// What has come of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Calm {
    pub kills: usize,
    pub requests: usize,
    /// Messages that stand in a turn's input once.
    pub told: usize,
    pub lost: usize,
    pub twice: usize,
    /// Messages that stand before one that the same writer had written to the same reader earlier.
    pub disordered: usize,
    pub seconds: f64,
}

/// What each agent was told in its turns, as its longest conversation has it.
type Book = Arc<Mutex<HashMap<usize, Vec<String>>>>;

impl Storm {
    /// Runs it to its end. `start` makes the command for the model at that address: the one that begins, or one that goes on.
    pub fn run(self, start: impl Fn(&str, bool) -> Command) -> Result<Calm, String> {
        let book = Book::default();
        let script = {
            let book = Arc::clone(&book);
            Script::new().when(move |request| self.reply(request, &book)).lean()
        };
        let (server, began) = (ModelServer::start(script), Instant::now());
        let (mut random, mut kills) = (Random(self.seed | 1), 0);
        let gap = 2 * self.expected() / (self.kills + 1);
        loop {
            let mut child =
                start(&server.url(), kills == 0).spawn().map_err(|error| format!("not started: {error}"))?;
            let due = (kills < self.kills).then(|| server.count() + 2 + random.below(gap.max(1)));
            match watch(&server, &mut child, due)? {
                Some(code) if code != Some(0) => {
                    return Err(format!("{self:?}: it ended with {code:?} after {kills} kills"));
                }
                Some(_) => break,
                None => kills += 1,
            }
        }
        let calm = Calm { kills, requests: server.count(), seconds: began.elapsed().as_secs_f64(), ..Calm::default() };
        if !server.problems().is_empty() {
            return Err(format!("{:#?}", server.problems()));
        }
        let book = book.lock().unwrap_or_else(PoisonError::into_inner);
        Ok((0..self.agents).fold(calm, |calm, reader| self.judge(calm, reader, book.get(&reader))))
    }

    fn expected(self) -> usize {
        self.messages / self.at_once + OTHER_REQUESTS * self.agents
    }

    /// Messages that each of them writes.
    fn quota(self) -> usize {
        self.messages / self.agents
    }

    /// To whom an agent writes a message.
    fn reader(self, writer: usize, number: usize) -> usize {
        (writer + 1 + number % (self.agents - 1)) % self.agents
    }

    fn reply(self, request: &Recorded, book: &Book) -> Option<Reply> {
        let (texts, done) = (request.user_texts(), request.tool_results());
        let me = texts.first()?.strip_prefix("You are `a").and_then(|rest| rest.split('`').next()?.parse().ok());
        let Some(me) = me else {
            let spawn = |reply: Reply, at: usize| {
                let input = json!({ "name": format!("a{at}"), "role": "writer", "prompt": "Write to the others." });
                reply.tool(format!("toolu_{at}"), "spawn_teammate", input)
            };
            let last = self.agents.min(done + STARTED_AT_ONCE);
            let begin = || json!({ "to": "team", "message": "Begin." });
            return Some(match done {
                _ if done < last => (done..last).fold(Reply::new().chunk(usize::MAX), spawn),
                _ if done == last => Reply::new().tool("toolu_begin", "send_message", begin()),
                _ => Reply::text("Noted."),
            });
        };
        if texts.len() == 1 {
            return Some(Reply::text("Ready."));
        }
        // As many messages come to each as it writes: as long as some are missing, there will be another turn for the rest.
        let is_first =
            texts.len() == 2 && texts.iter().map(|text| envelopes(text).count()).sum::<usize>() < self.quota();
        let due = if is_first { self.quota() / 2 } else { self.quota() };
        let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
        let told: Vec<String> = texts.into_iter().skip(1).collect();
        let known = book.entry(me).or_default();
        if told.len() >= known.len() {
            *known = told;
        }
        let write = |reply: Reply, number: usize| {
            let to = self.reader(me, number);
            let input = json!({ "to": format!("a{to}"), "message": format!("{me}>{to}#{number}") });
            reply.tool(format!("toolu_{number}"), "send_message", input)
        };
        let last = due.min(done + self.at_once);
        Some(if done < last { (done..last).fold(Reply::new().chunk(usize::MAX), write) } else { Reply::text("Good.") })
    }

    fn judge(self, mut calm: Calm, reader: usize, told: Option<&Vec<String>>) -> Calm {
        let mut came: HashMap<usize, Vec<usize>> = HashMap::new();
        for (writer, to, number) in told.into_iter().flatten().flat_map(|text| envelopes(text)) {
            assert_eq!(to, reader, "letter {number} of {writer} came to the wrong reader");
            came.entry(writer).or_default().push(number);
        }
        for writer in (0..self.agents).filter(|writer| *writer != reader) {
            let came = came.remove(&writer).unwrap_or_default();
            calm.disordered += came.windows(2).filter(|pair| matches!(pair, [first, second] if first > second)).count();
            for number in (0..self.quota()).filter(|number| self.reader(writer, *number) == reader) {
                match came.iter().filter(|known| **known == number).count() {
                    0 => calm.lost += 1,
                    1 => calm.told += 1,
                    _ => calm.twice += 1,
                }
            }
        }
        calm
    }
}

/// The messages in what somebody was told: who wrote, to whom, and which one it was.
fn envelopes(text: &str) -> impl Iterator<Item = (usize, usize, usize)> {
    text.lines().filter_map(|line| {
        let (writer, rest) = line.split_once('>')?;
        let (to, number) = rest.split_once('#')?;
        Some((writer.parse().ok()?, to.parse().ok()?, number.parse().ok()?))
    })
}

/// Waits for the end, with its code; or until it is time, and kills.
fn watch(server: &ModelServer, child: &mut Child, due: Option<usize>) -> Result<Option<Option<i32>>, String> {
    let (mut heard, mut seen) = (Instant::now(), server.count());
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(Some(status.code()));
        }
        let count = server.count();
        if count != seen {
            (heard, seen) = (Instant::now(), count);
        }
        let silent = heard.elapsed() > SILENCE_MAX;
        if silent || due.is_some_and(|due| count >= due) {
            child.kill().and_then(|()| child.wait()).map_err(|error| error.to_string())?;
            return if silent { Err(format!("nothing happened after {count} requests")) } else { Ok(None) };
        }
        std::thread::park_timeout(LOOK);
    }
}

/// Numbers that look like chance, the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap_or_default() % bound
    }
}

impl fmt::Display for Calm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Calm { kills, requests, told, lost, twice, disordered, seconds } = self;
        write!(
            f,
            "{told} letters once, {lost} never, {twice} twice, {disordered} out of order; {kills} kills, {requests} requests, {seconds:.1} s"
        )
    }
}
