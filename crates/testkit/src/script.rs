//! Which reply goes to which request.
//!
//! Rules are asked first, in order; what none of them claims takes the next reply of the list. A test with one agent
//! writes a list; a test with parallel agents, whose requests arrive in any order, writes rules.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::record::Recorded;
use crate::reply::Reply;

type Rule = Box<dyn FnMut(&Recorded) -> Option<Reply> + Send>;
type Glance = Box<dyn FnMut(&[u8]) -> Option<Reply> + Send>;

#[derive(Default)]
pub struct Script {
    replies: VecDeque<Reply>,
    rules: Vec<Rule>,
    glance: Option<Glance>,
    delay: Option<Duration>,
    pub(crate) models: Vec<String>,
    pub(crate) lean: bool,
}

impl Script {
    pub fn new() -> Script {
        Script::default()
    }

    /// An agent's whole life, for benches: `turns` calls of one tool, then the text `last`. It looks only at the
    /// tool results in the request, so it serves any number of conversations at once.
    pub fn tool_loop(turns: usize, tool: impl Into<String>, args: Value, last: impl Into<String>) -> Script {
        let (tool, last) = (tool.into(), last.into());
        Script::new().when(move |request| {
            let done = request.tool_results();
            Some(if done < turns {
                Reply::new().tool(format!("toolu_{done}"), &tool, args.clone())
            } else {
                Reply::text(&last)
            })
        })
    }

    /// Adds a reply to the list; each is given once.
    pub fn then(mut self, reply: Reply) -> Script {
        self.replies.push_back(reply);
        self
    }

    /// Adds a rule; it may answer any number of requests.
    pub fn when(mut self, rule: impl FnMut(&Recorded) -> Option<Reply> + Send + 'static) -> Script {
        self.rules.push(Box::new(rule));
        self
    }

    /// Adds a rule: each request that `fits` gets a copy of `reply`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use max_team_testkit::{Reply, Script};
    /// use serde_json::json;
    ///
    /// // A team whose model takes 50 ms: workers answer, the lead plans when it is first spoken to.
    /// let plan = Reply::new().tool("t1", "submit_plan", json!({"goal": "…", "tasks": []}));
    /// Script::new()
    ///     .on(|request| request.last_user().starts_with("# Your task"), Reply::text("done").label("task"))
    ///     .on(|request| request.last_user().contains("is over:"), Reply::text("All done."))
    ///     .on(|request| request.user_texts().len() == 1 && request.tool_results() == 0, plan)
    ///     .delay(Duration::from_millis(50));
    /// ```
    pub fn on(self, fits: impl Fn(&Recorded) -> bool + Send + 'static, reply: Reply) -> Script {
        self.when(move |request| fits(request).then(|| reply.clone()))
    }

    /// A rule that is asked before all others and sees only a request's bytes. What it answers is not parsed, and of
    /// the request only times and size are kept: for benches in which the server must not be what is measured.
    pub fn glance(mut self, rule: impl FnMut(&[u8]) -> Option<Reply> + Send + 'static) -> Script {
        self.glance = Some(Box::new(rule));
        self
    }

    /// The [delay](Reply::delay) of every reply that has none of its own.
    pub fn delay(mut self, delay: Duration) -> Script {
        self.delay = Some(delay);
        self
    }

    /// The models that `/v1/models` and `/api/tags` list.
    pub fn models<M: Into<String>>(mut self, models: impl IntoIterator<Item = M>) -> Script {
        self.models.extend(models.into_iter().map(Into::into));
        self
    }

    /// Keeps times and sizes of requests but not their bodies and headers, so that a long bench does not fill memory.
    pub fn lean(mut self) -> Script {
        self.lean = true;
        self
    }

    pub(crate) fn left(&self) -> usize {
        self.replies.len()
    }

    pub(crate) fn glanced(&mut self, body: &[u8]) -> Option<Reply> {
        let mut reply = self.glance.as_mut()?(body)?;
        reply.delivery.delay = reply.delivery.delay.or(self.delay);
        Some(reply)
    }

    pub(crate) fn reply(&mut self, request: &Recorded) -> Option<Reply> {
        let ruled = self.rules.iter_mut().find_map(|rule| rule(request));
        let mut reply = ruled.or_else(|| self.replies.pop_front())?;
        reply.delivery.delay = reply.delivery.delay.or(self.delay);
        Some(reply)
    }
}

impl<const N: usize> From<[Reply; N]> for Script {
    fn from(replies: [Reply; N]) -> Script {
        Script { replies: replies.into(), ..Script::default() }
    }
}

impl From<Vec<Reply>> for Script {
    fn from(replies: Vec<Reply>) -> Script {
        Script { replies: replies.into(), ..Script::default() }
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("replies", &self.replies).field("rules", &self.rules.len()).finish()
    }
}
