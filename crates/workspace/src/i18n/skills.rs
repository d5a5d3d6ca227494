//! The phrases about skills.

use max_team_core::limits::UNTRUSTED_NAMED_MAX;
use max_team_runtime::skills::State;

use super::Lang;

impl Lang {
    /// How a skill stands.
    pub fn skill_state(self, state: &State, for_users: bool, for_models: bool) -> String {
        match (state, for_users, for_models) {
            (State::Untrusted, ..) => self.untrusted().to_owned(),
            (State::Changed, ..) => self.changed().to_owned(),
            (State::Off, ..) => self.turned_off().to_owned(),
            (State::Lacks(missing), ..) => self.lacks(&missing.join(", ")),
            (State::Ready, true, false) => self.only_users().to_owned(),
            (State::Ready, false, true) => self.only_models().to_owned(),
            (State::Ready, ..) => self.ready().to_owned(),
        }
    }

    /// Skills that came with the project and that no agent uses yet.
    pub fn skills_untrusted(self, names: &[String]) -> String {
        let more = names.len().saturating_sub(UNTRUSTED_NAMED_MAX);
        let named = names.iter().take(UNTRUSTED_NAMED_MAX).map(|name| format!("`{name}`"));
        let more = (more > 0).then(|| self.and_more_skills(more));
        let names = named.chain(more).collect::<Vec<_>>().join(", ");
        self.untrusted_skills(&names)
    }

    fn lacks(self, missing: &str) -> String {
        self.needs_missing(missing)
    }

    pub fn no_skill(self, name: &str, near: Option<&str>) -> String {
        match near {
            Some(near) => self.unknown_skill_near(name, near),
            None => self.unknown_skill(name),
        }
    }

    pub fn skill_switched(self, name: &str, is_on: bool) -> String {
        match is_on {
            true => self.skill_is_on(name),
            false => self.skill_is_off(name),
        }
    }

    pub fn skill_made(self, file: &str, name: &str, is_project: bool) -> String {
        match is_project {
            true => self.project_skill_made(file, name),
            false => self.user_skill_made(file),
        }
    }

    /// A skill that has not come to its end is talked to.
    pub fn skill_talked_to(self, name: &str, goes_on: bool) -> String {
        let back = match goes_on {
            true => self.skill_continues_with().to_owned(),
            false => String::new(),
        };
        self.unfinished_skill_talked_to(name, &back)
    }
}
