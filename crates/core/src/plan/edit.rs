//! Edits that a person makes in a plan before approving it.
//!
//! An edit turns a draft into a new draft and refuses only what it cannot apply; [`super::Graph`] checks the new
//! draft. Nothing here checks who edits.

use serde::{Deserialize, Serialize};

use super::flaw::{DraftFlaw, FlawReason};
use super::{Budget, Draft, TaskDraft, WhenCondition};
use crate::suggest::nearest;

/// One edit of a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edit {
    /// Replace the description of a task.
    Describe {
        task: String,
        /// The whole new description.
        text: String,
    },
    /// Replace the title of a task; an empty text removes it.
    Retitle { task: String, text: String },
    /// Assign a task to another member.
    Assign { task: String, agent: String },
    /// Replace the list of tasks that a task builds on.
    Needs {
        task: String,
        /// The whole new list.
        needs: Vec<String>,
    },
    /// Set the limits of the plan or of one task.
    Budget {
        /// The task; `None` for the plan as a whole.
        #[serde(default)]
        task: Option<String>,
        /// The new limits, complete.
        budget: Budget,
    },
    /// Exclude a task, or include it again.
    Skip {
        task: String,
        /// Whether it is excluded.
        skip: bool,
    },
    /// Remove a task. Tasks that built on it build on its own `needs` instead, so that the order stays.
    Remove { task: String },
    /// Replace the commands that must pass after a task.
    Verify {
        /// The task that they check.
        task: String,
        /// The new list, complete.
        verify: Vec<String>,
    },
    /// Use another model for a task.
    Model {
        task: String,
        /// The model; `None` for the owner's.
        #[serde(default)]
        model: Option<String>,
    },
}

/// Applies one edit. The new draft is not checked.
pub fn edit(draft: &Draft, edit: &Edit) -> Result<Draft, DraftFlaw> {
    let mut draft = draft.clone();
    match edit {
        Edit::Describe { task, text } => find(&mut draft, task)?.description.clone_from(text),
        Edit::Retitle { task, text } => find(&mut draft, task)?.title = text.trim().to_owned(),
        Edit::Assign { task, agent } => find(&mut draft, task)?.agent = agent.trim().to_owned(),
        Edit::Needs { task, needs } => find(&mut draft, task)?.needs = unique(needs.iter().map(|need| need.trim())),
        Edit::Budget { task: None, budget } => draft.budget = *budget,
        Edit::Budget { task: Some(task), budget } => find(&mut draft, task)?.budget = *budget,
        Edit::Skip { task, skip } => find(&mut draft, task)?.skip = *skip,
        Edit::Remove { task } => remove(&mut draft, task)?,
        Edit::Verify { task, verify } => find(&mut draft, task)?.verify.clone_from(verify),
        Edit::Model { task, model } => {
            let model = model.as_deref().map(str::trim).filter(|model| !model.is_empty());
            find(&mut draft, task)?.model = model.map(str::to_owned);
        }
    }
    Ok(draft)
}

fn find<'a>(draft: &'a mut Draft, id: &str) -> Result<&'a mut TaskDraft, DraftFlaw> {
    let place = place(draft, id)?;
    draft.tasks.get_mut(place).ok_or_else(|| unknown(id, None))
}

fn place(draft: &Draft, id: &str) -> Result<usize, DraftFlaw> {
    let known = || draft.tasks.iter().map(|task| task.id.as_str());
    known().position(|known| known == id).ok_or_else(|| unknown(id, nearest(id, known())))
}

fn unknown(id: &str, near: Option<&str>) -> DraftFlaw {
    DraftFlaw { task: id.to_owned(), reason: FlawReason::NoTask { near: near.map(str::to_owned) } }
}

fn remove(draft: &mut Draft, id: &str) -> Result<(), DraftFlaw> {
    let place = place(draft, id)?;
    // Without its condition, a task that runs only after a failure would run always.
    let rescue = draft.tasks.iter().find(|task| waits(task, id, WhenCondition::Failed));
    if let Some(rescue) = rescue {
        return Err(DraftFlaw { task: id.to_owned(), reason: FlawReason::NeededByRescue(rescue.id.clone()) });
    }
    let gone = draft.tasks.remove(place);
    for task in &mut draft.tasks {
        if waits(task, id, WhenCondition::Ok) {
            task.when = None;
        }
        if task.needs.contains(&gone.id) {
            let bridged = task
                .needs
                .iter()
                .flat_map(|need| if *need == gone.id { gone.needs.as_slice() } else { std::slice::from_ref(need) });
            task.needs = unique(bridged.map(String::as_str));
        }
    }
    draft.gates.retain(|gate| gate.before != gone.id);
    Ok(())
}

fn waits(task: &TaskDraft, id: &str, wanted: WhenCondition) -> bool {
    task.condition() == Ok(Some((id, wanted)))
}

/// The names in their order, each once.
fn unique<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    names.filter(|name| seen.insert(*name)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Gate, Graph};

    fn words(list: &[&str]) -> Vec<String> {
        list.iter().map(|word| (*word).to_owned()).collect()
    }

    fn task(id: &str, needs: &[&str]) -> TaskDraft {
        TaskDraft {
            id: id.into(),
            agent: "leo".into(),
            description: "x".into(),
            needs: words(needs),
            ..TaskDraft::default()
        }
    }

    /// design, data → impl → tests, with a gate before impl.
    fn draft() -> Draft {
        let tests = TaskDraft { when: Some("impl.ok".into()), ..task("tests", &["impl", "design"]) };
        Draft {
            goal: "g".into(),
            tasks: vec![task("design", &[]), task("data", &[]), task("impl", &["design", "data"]), tests],
            gates: vec![Gate { before: "impl".into(), ask: "owner".into() }],
            ..Draft::default()
        }
    }

    #[test]
    fn each_edit_changes_only_its_target() {
        let budget = Budget { nano: Some(5), ..Budget::default() };
        type Change = fn(&mut Draft);
        let table: Vec<(&str, Change)> = vec![
            (r#"{"describe":{"task":"impl","text":" y\n"}}"#, |d| d.tasks[2].description = " y\n".into()),
            (r#"{"retitle":{"task":"impl","text":" Y "}}"#, |d| d.tasks[2].title = "Y".into()),
            (r#"{"assign":{"task":"data","agent":"ada "}}"#, |d| d.tasks[1].agent = "ada".into()),
            (r#"{"needs":{"task":"impl","needs":["data"," data"]}}"#, |d| d.tasks[2].needs = words(&["data"])),
            (r#"{"budget":{"budget":{"nano":5}}}"#, |d| d.budget.nano = Some(5)),
            (r#"{"budget":{"task":"impl","budget":{"wall_ms":7}}}"#, |d| d.tasks[2].budget.wall_ms = Some(7)),
            (r#"{"skip":{"task":"data","skip":true}}"#, |d| d.tasks[1].skip = true),
            (r#"{"skip":{"task":"data","skip":false}}"#, |_| {}),
            (r#"{"verify":{"task":"impl","verify":["cargo test"]}}"#, |d| d.tasks[2].verify = words(&["cargo test"])),
            (r#"{"model":{"task":"impl","model":"opus"}}"#, |d| d.tasks[2].model = Some("opus".into())),
            (r#"{"model":{"task":"impl","model":" "}}"#, |_| {}),
            (r#"{"model":{"task":"impl"}}"#, |_| {}),
        ];
        for (text, change) in table {
            let one: Edit = serde_json::from_str(text).unwrap();
            let mut want = draft();
            change(&mut want);
            assert_eq!(edit(&draft(), &one), Ok(want), "{text}");
            assert_eq!(serde_json::from_str::<Edit>(&serde_json::to_string(&one).unwrap()).unwrap(), one);
        }
        let back = edit(&Draft { budget, ..draft() }, &Edit::Budget { task: None, budget: Budget::default() });
        assert_eq!(back, Ok(draft()));
    }

    #[test]
    fn removing_a_task_keeps_the_order_of_the_others() {
        let without = edit(&draft(), &Edit::Remove { task: "impl".into() }).unwrap();
        let tests = task("tests", &["design", "data"]);
        let want =
            Draft { goal: "g".into(), tasks: vec![task("design", &[]), task("data", &[]), tests], ..Draft::default() };
        assert_eq!(without, want);
        assert!(Graph::new(&without, &["leo"]).is_ok());
        let first = edit(&draft(), &Edit::Remove { task: "design".into() }).unwrap();
        assert_eq!(first.tasks[1].needs, words(&["data"]));
        assert_eq!(first.gates.len(), 1);
        assert!(Graph::new(&first, &["leo"]).is_ok());
    }

    #[test]
    fn an_inapplicable_edit_is_refused() {
        let rescued = || {
            let mut draft = draft();
            draft.tasks.push(TaskDraft { when: Some("impl.failed".into()), ..task("fix", &[]) });
            draft
        };
        let skip = |task: &str| Edit::Skip { task: task.into(), skip: true };
        let remove = |task: &str| Edit::Remove { task: task.into() };
        let table = [
            (draft(), skip("desing"), "task `desing`: there is no such task, did you mean `design`?"),
            (draft(), skip("kubernetes"), "task `kubernetes`: there is no such task"),
            (draft(), remove(""), "there is no such task"),
            (rescued(), remove("impl"), "task `impl`: task `fix` runs only if this one fails; take that one out first"),
        ];
        for (draft, one, want) in table {
            assert_eq!(edit(&draft, &one).unwrap_err().to_string(), want);
        }
        assert!(edit(&rescued(), &remove("fix")).is_ok());
    }
}
