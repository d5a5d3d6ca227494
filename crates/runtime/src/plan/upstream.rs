//! The results that a task builds on, as its owner reads them: within named bounds, each once. A larger result is left as a file to read.

use std::io::Write;
use std::path::Path;

use max_team_core::hash::Hash;
use max_team_core::id::PlanId;
use max_team_core::limits::{UPSTREAM_BYTES_MAX, UPSTREAM_ITEM_BYTES_MAX};
use max_team_core::plan::event::{Artifact, ArtifactType};
use max_team_core::plan::{Plan, TaskStatus, TaskView};

use super::check::CODE_DIFF;
use super::correct::evidence_lines;
use crate::active_session::ActiveSession;

/// Tells an owner that has read older results which ones count.
const REPLACES: &str = "These results replace older ones that you were given.\n";
const HIDDEN: &str = "It is left out: it may show files that are out of your sight. Read the files you can see.";

/// The section of a task's text with the results of the tasks before it; empty if there are none. An owner that gets the task
/// again has read older ones.
pub(super) fn told(active: &ActiveSession, root: &Path, plan: &Plan, id: PlanId, view: &TaskView<'_>) -> String {
    let needs = plan.graph().map_or(&[][..], |graph| graph.needs(view.index));
    let mut text = results(active, root, plan, id, view, needs);
    if let Some((failed, error)) = plan.upstream_error(view.index) {
        text.push_str(&format!("\n### Why `{failed}` failed\n{error}\n"));
    }
    if !text.is_empty() {
        let again = if view.attempt > 1 { REPLACES } else { "" };
        text.insert_str(0, &format!("\n## What you build on\n{again}"));
    }
    text
}

/// The results that are newer than those that the owner of a task was told of; empty if there are none.
pub(crate) fn news(active: &ActiveSession, root: &Path, plan: &Plan, id: PlanId, view: &TaskView<'_>) -> String {
    let newer = results(active, root, plan, id, view, &plan.newer_needs(view.index));
    if newer.is_empty() { newer } else { format!("## What is new in what you build on\n{REPLACES}{newer}") }
}

/// The results of these tasks as the owner of another one reads them.
fn results(
    active: &ActiveSession,
    root: &Path,
    plan: &Plan,
    id: PlanId,
    reader: &TaskView<'_>,
    needs: &[usize],
) -> String {
    let mut text = String::new();
    let mut room = UPSTREAM_BYTES_MAX;
    for need in needs.iter().filter_map(|need| plan.task(*need)) {
        let (Some(result), name) = (need.result, need.task.id.as_str()) else { continue };
        let standing = standing(&need);
        let sees = may_see(active, reader.member, need.member);
        let mut each = Vec::new();
        for artifact in &result.artifacts {
            let is_hidden = artifact.name == CODE_DIFF && !sees;
            let told = if is_hidden { HIDDEN.to_owned() } else { tell(root, id, name, artifact, &mut room) };
            each.push((artifact, told));
        }
        let diff = each.iter().find(|(artifact, told)| artifact.name == CODE_DIFF && *told == artifact.content);
        let diff = diff.map_or("", |(diff, _)| diff.content.as_str());
        for (artifact, told) in each.iter().filter(|(artifact, _)| !adds(diff, artifact)) {
            text.push_str(&format!("\n### {} of `{name}`{standing}\n{told}\n", artifact.name));
        }
        let checks = if sees { evidence_lines(&result.evidence) } else { String::new() };
        if !checks.is_empty() && checks.len() <= room {
            room -= checks.len();
            text.push_str(&format!("\n### Checks of `{name}`, run by the program\n{checks}"));
        }
    }
    text
}

/// The state of a task that did not succeed by itself, and the decision about it: for tasks that depend on its answer.
fn standing(need: &TaskView<'_>) -> String {
    let lacks = if need.status == TaskStatus::Skipped { ": do without the files that it should have left" } else { "" };
    let decided =
        need.decision.map(|decision| format!(" (the task is {}{lacks}; {})", need.status.name(), decision.as_text()));
    decided.unwrap_or_default()
}

/// Whether a member sees everything that the owner of another task sees: then the changes of that owner may be shown.
fn may_see(active: &ActiveSession, member: &str, owner: &str) -> bool {
    let constraints = |name: &str| active.owner(name).map(|teammate| teammate.settings.constraints);
    let (Some(mine), Some(theirs)) = (constraints(member), constraints(owner)) else { return false };
    let within = mine.allowed_dirs.is_none() || mine.allowed_dirs == theirs.allowed_dirs;
    let everywhere = mine.allowed_dirs.iter().flatten().any(|folder| folder == ".");
    (within || everywhere) && mine.blocked_patterns.iter().all(|pattern| theirs.blocked_patterns.contains(pattern))
}

/// Whether a diff adds the file that an artifact names, so that it holds the whole file.
fn adds(diff: &str, artifact: &Artifact) -> bool {
    let added = format!("\n--- /dev/null\n+++ b/{}\n", artifact.content);
    artifact.kind == ArtifactType::FilePath && diff.contains(&added)
}

/// Whether a result that a task builds on is too large for its text and becomes a file.
pub(crate) fn leaves_file(plan: &Plan, index: usize) -> bool {
    let upstream = plan.upstream(index);
    let sizes = || upstream.iter().flat_map(|(_, artifacts)| artifacts.iter()).map(|artifact| artifact.content.len());
    sizes().any(|bytes| bytes > UPSTREAM_ITEM_BYTES_MAX) || sizes().sum::<usize>() > UPSTREAM_BYTES_MAX
}

/// An artifact within the room there is; a larger one as a file to read.
fn tell(root: &Path, plan: PlanId, task: &str, artifact: &Artifact, room: &mut usize) -> String {
    if artifact.kind == ArtifactType::FilePath {
        return format!("The file `{}`.", artifact.content);
    }
    let bytes = artifact.content.len();
    if bytes <= UPSTREAM_ITEM_BYTES_MAX && bytes <= *room {
        *room -= bytes;
        return artifact.content.clone();
    }
    match keep(root, plan, task, artifact) {
        Ok(path) => format!("It has {bytes} bytes and is in the file `{path}`: read it."),
        Err(_) => {
            let most = UPSTREAM_ITEM_BYTES_MAX.min(*room);
            let cut = artifact.content.floor_char_boundary(most);
            *room -= cut;
            format!("{}\n[cut: {cut} of {bytes} bytes]", artifact.content.get(..cut).unwrap_or_default())
        }
    }
}

/// Leaves a large artifact where members can read it; git does not see the folder. A link in the way could lead
/// anywhere, so none is followed.
fn keep(root: &Path, plan: PlanId, task: &str, artifact: &Artifact) -> std::io::Result<String> {
    let mut folder = root.to_path_buf();
    for name in [".max-team", "artifacts"] {
        folder.push(name);
        match std::fs::symlink_metadata(&folder) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Err(std::io::Error::other("something else is where the folder would be")),
            Err(_) => std::fs::create_dir(&folder)?,
        }
    }
    let ending = if artifact.kind == ArtifactType::Json { "json" } else { "txt" };
    let plan = plan.to_string();
    let key = Hash::of_fields(&[plan.as_bytes(), task.as_bytes(), artifact.name.as_bytes()]).to_string();
    let plain = |text: &str| text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect::<String>();
    let name = format!("{}-{}-{}.{ending}", plain(task), plain(&artifact.name), key.get(..12).unwrap_or(&key));
    drop(put_new(&folder.join(".gitignore"), b"*\n"));
    let draft = folder.join(format!("{name}.new"));
    drop(std::fs::remove_file(&draft));
    put_new(&draft, artifact.content.as_bytes())?;
    std::fs::rename(&draft, folder.join(&name))?;
    Ok(format!(".max-team/artifacts/{name}"))
}

/// Creates a file that does not exist yet.
fn put_new(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_that_adds_a_file_holds_the_whole_file() {
        let file = |path: &str| Artifact { name: path.into(), kind: ArtifactType::FilePath, content: path.into() };
        let added =
            "diff --git a/new.py b/new.py\nnew file mode 100644\n--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x\n";
        let changed = "diff --git a/old.py b/old.py\n--- a/old.py\n+++ b/old.py\n@@ -1 +1 @@\n-x\n+y\n";
        for (diff, path, whole) in
            [(added, "new.py", true), (added, "w.py", false), (changed, "old.py", false), ("", "new.py", false)]
        {
            assert_eq!(adds(diff, &file(path)), whole, "{path}");
        }
        let words = Artifact { kind: ArtifactType::Text, ..file("new.py") };
        assert!(!adds(added, &words));
    }
}
