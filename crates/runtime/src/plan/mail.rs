//! What a plan does with its mail: everything there is, in one commit.

use super::*;

impl PlanLoop {
    /// Takes everything there is, in one commit.
    pub(super) async fn take_mail(&mut self) -> Result<(), RuntimeError> {
        let mut batch = Batch::default();
        for letter in self.floor.mail(&self.stream, false)? {
            batch.acks.push(letter.id);
            if letter.kind == Kind::TaskResult {
                // Before it is decided that somebody must be asked; what somebody has answered comes first.
                self.resume(&mut batch);
            }
            if let Some(input) = self.read(&letter) {
                self.decide(input, &mut batch);
            }
        }
        self.resume(&mut batch);
        self.commit(batch).await
    }

    pub(super) fn read(&mut self, letter: &Envelope) -> Option<Input> {
        let body = &letter.body;
        match letter.kind {
            Kind::PlanApprovalRequest => {
                let proposed: PlanProposed = serde_json::from_value(body.get("proposed")?.clone()).ok()?;
                Some(Input::Propose(Box::new(proposed)))
            }
            Kind::PlanApprovalResponse => {
                let question: QuestionId = body.get("question")?.as_str()?.parse().ok()?;
                let say: Say = serde_json::from_value(body.get("say")?.clone()).ok()?;
                let by: Principal = serde_json::from_value(body.get("by")?.clone()).ok()?;
                if let Say::Edit(edits) = &say {
                    return self.edited(edits, by);
                }
                let by = By::Person(format!("{} at {}", by.user, by.door));
                Some(Input::Answered { question, say, by })
            }
            Kind::TaskResult => self.reported(body),
            Kind::NeedClarify => {
                let assignment: Assignment = serde_json::from_value(body.get("assignment")?.clone()).ok()?;
                let task = self.plan.graph()?.index(&assignment.task)?;
                let question = text_at(body, "question");
                Some(Input::Asked { task, attempt: assignment.attempt, question, letter: letter.id })
            }
            Kind::TaskUpdate => {
                let task = self.plan.graph()?.index(&text_at(body, "task"))?;
                let by = text_at(body, "by");
                match serde_json::from_value(body.get("says")?.clone()).ok()? {
                    Says::Answer(answer) => Some(Input::Told { task, answer, by }),
                    Says::Rule(ruling) => Some(Input::Rule { task, ruling, by }),
                }
            }
            Kind::Shutdown => {
                self.replaced = body.get("replaced").and_then(Value::as_bool).unwrap_or_default();
                let task = match body.get("task").and_then(Value::as_str) {
                    Some(name) => Some(self.plan.graph()?.index(name)?),
                    None => None,
                };
                Some(Input::Stop { task, by: text_at(body, "by") })
            }
            _ => None,
        }
    }

    /// Edits that lead to a plan that cannot run change nothing; whoever made them checked before.
    pub(super) fn edited(&self, edits: &[max_team_core::plan::Edit], by: Principal) -> Option<Input> {
        let team = self.floor.team()?;
        let mut draft = self.plan.draft()?.clone();
        for change in edits {
            draft = edit(&draft, change).ok()?;
        }
        let (graph, _) = propose::check(&team, &self.floor.root, &draft).ok()?;
        let forecast = propose::expect(&team, &draft, &graph);
        Some(Input::Edited(Box::new(PlanEdited { draft, forecast, by })))
    }

    pub(super) fn reported(&mut self, body: &Value) -> Option<Input> {
        let assignment: Assignment = serde_json::from_value(body.get("assignment")?.clone()).ok()?;
        let task = self.plan.graph()?.index(&assignment.task)?;
        let spent: Spent = serde_json::from_value(body.get("spent")?.clone()).unwrap_or_default();
        let end: End = serde_json::from_value(body.get("end")?.clone()).ok()?;
        let output = text_at(body, "output");
        let ok = body.get("ok").and_then(Value::as_bool).unwrap_or_default();
        let report = match end {
            _ if ok => {
                let written = self.plan.draft()?.tasks.get(task)?;
                let leaves = self.leaves(task);
                let looked = !check::needs_a_look(written, leaves);
                let findings = looked.then(|| check::words(leaves, &output));
                Report::Done { output, findings }
            }
            End::Budget => {
                self.found_too_little(body);
                Report::OutOfMoney { output }
            }
            End::Interrupted => Report::Stopped,
            _ => Report::Failed { error: text_at(body, "error") },
        };
        Some(Input::Reported { task, attempt: assignment.attempt, report, spent })
    }

    /// Of several, whoever had the least goes on first.
    pub(super) fn found_too_little(&mut self, body: &Value) {
        let left: Budget =
            body.get("left").and_then(|left| serde_json::from_value(left.clone()).ok()).unwrap_or_default();
        let then = self.too_little.unwrap_or(left);
        self.too_little =
            Some(Budget { nano: left.nano.min(then.nano), tokens: left.tokens.min(then.tokens), wall_ms: None });
    }
}
