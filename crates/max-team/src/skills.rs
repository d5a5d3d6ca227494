//! Where skills lie for this user, and what the runtime may know of the machine to judge them.

use max_team_runtime::skills::{Machine, Places, Trust};

use crate::permissions::Trusted;
use crate::setup::Place;

/// The usual places: the project's, ours in the user's folder, and those that other programs share.
pub(crate) fn places(place: &Place) -> Places {
    let user = place.env.user();
    let shared = [".agents/skills", ".claude/skills"].map(|name| user.as_ref().map(|user| user.join(name)));
    let own = std::iter::once(place.home.join("skills"));
    let home = place.home.clone();
    Places {
        project: true,
        user: own.chain(shared.into_iter().flatten()).collect(),
        builtin: true,
        machine: machine(place),
        index: Some(place.home.join("skills.index.json")),
        // Read each time: a yes in another terminal counts at once. A file that cannot be read says yes to nothing.
        trust: Trust::new(move |root| {
            Trusted::read(&home).map(|trusted| trusted.of(&root.to_string_lossy()).to_vec()).unwrap_or_default()
        }),
    }
}

fn machine(place: &Place) -> Machine {
    let path = place.env.get("PATH").unwrap_or_default();
    Machine {
        path: std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect(),
        env: place.env.names().map(str::to_owned).collect(),
        config: Default::default(),
        os: std::env::consts::OS.to_owned(),
    }
}
