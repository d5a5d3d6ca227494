//! The context of an agent's tools.
//!
//! It follows from settings, grants and the skills that a conversation has loaded, and is made again only when one of
//! them has changed: so a call does not cost more for an agent with many rules.

use std::path::PathBuf;
use std::sync::Arc;

use max_team_core::agent::Settings;
use max_team_core::policy::{Grant, Rules, judge};
use max_team_tools::command::CommandSandbox;
use max_team_tools::{AgentStore, HostRules, PolicyCheck, ToolContext};

use super::flight::Wire;
use super::{Agent, Frame};
use crate::skills::{self, State};

/// Skills whose folders one agent can read.
const SKILL_FOLDERS_MAX: usize = 32;

/// Values that follow from an agent's history, settings and grants, kept until those change.
#[derive(Default)]
pub(super) struct Memo {
    /// The history as it is sent, each message encoded once.
    pub(super) wire: Option<Wire>,
    cx: Option<Box<CachedContext>>,
    /// The skills that the conversation has loaded, and how many of its messages were searched.
    skills: (usize, Vec<String>),
}

/// The context of tools, and what it was made from.
struct CachedContext {
    settings: Arc<Settings>,
    grants: Vec<Grant>,
    folders: Vec<(String, PathBuf)>,
    cx: ToolContext,
}

impl CachedContext {
    fn is_of(&self, frame: &Frame, grants: &[Grant], folders: &[(String, PathBuf)]) -> bool {
        Arc::ptr_eq(&self.settings, frame.settings())
            && Arc::ptr_eq(&self.cx.root, frame.beneath())
            && self.grants == grants
            && self.folders == folders
    }
}

/// By what the connections of a task's checks are judged: the rules of the task's owner. No person is asked.
pub(crate) fn owner_hosts(owner: Option<&Settings>, private: &[String]) -> HostRules {
    owner.map_or_else(HostRules::default, |owner| {
        HostRules::new(policy_by(Arc::new(owner.clone()), Vec::new()), private)
    })
}

/// Judges by these settings and grants.
fn policy_by(settings: Arc<Settings>, grants: Vec<Grant>) -> PolicyCheck {
    PolicyCheck::new(move |tool, action| judge(&Rules { grants: &grants, ..settings.rules() }, tool, action))
}

impl Agent {
    pub(super) fn context(&mut self) -> ToolContext {
        let folders = self.skill_folders();
        let fits = self.memo.cx.take().filter(|known| known.is_of(&self.frame, self.turn.grants(), &folders));
        let known = fits.unwrap_or_else(|| self.made_of(folders));
        let cx = ToolContext { cancel: self.running.cancel.clone(), ..known.cx.clone() };
        self.memo.cx = Some(known);
        cx
    }

    fn made_of(&self, folders: Vec<(String, PathBuf)>) -> Box<CachedContext> {
        let cx = self.frame.context(&self.active.shared, self.turn.origin.agent, &self.running.cancel);
        let loaded = folders.iter().map(|(_, folder)| folder.clone());
        let reads = cx.sandbox.reads.iter().cloned().chain(loaded).collect();
        let (policy, private) = (self.gate(), &self.active.shared.services.private_hosts);
        let hosts = HostRules::new(policy.clone(), private);
        let cx = ToolContext {
            background: Arc::clone(&self.commands.background),
            browser: Arc::clone(&self.commands.browser),
            policy,
            sandbox: Arc::new(CommandSandbox { reads, hosts, ..CommandSandbox::clone(&cx.sandbox) }),
            folders: folders.clone().into(),
            stores: self.stores().into(),
            session: self.active.session.to_string().into(),
            ..cx
        };
        let (settings, grants) = (Arc::clone(self.frame.settings()), self.turn.grants().to_vec());
        Box::new(CachedContext { settings, grants, folders, cx })
    }

    /// Its own folders: the one that its session shares, and the one under its name in this project.
    fn stores(&self) -> [AgentStore; 2] {
        let (home, active) = (&self.active.shared.home, &self.active);
        [AgentStore::files(home, active.session), AgentStore::data(home, &active.root, &self.frame.definition().name)]
    }

    /// Judges actions of a tool beyond its call, as the machine does.
    pub(super) fn gate(&self) -> PolicyCheck {
        policy_by(Arc::clone(self.frame.settings()), self.turn.grants().to_vec())
    }

    /// The folders of the skills that the conversation has loaded, as far as they lie outside the project. They follow
    /// from the history, so they are the same after a crash.
    fn skill_folders(&mut self) -> Vec<(String, PathBuf)> {
        let (seen, names) = &mut self.memo.skills;
        let history = self.turn.history();
        let fresh = history.get(*seen..).unwrap_or_default();
        for name in skills::loaded(fresh, self.turn.origin.lead) {
            if !names.contains(&name) && names.len() < SKILL_FOLDERS_MAX {
                names.push(name);
            }
        }
        *seen = (*seen).min(history.len()) + skills::looked_at(fresh);
        let errand = self.turn.assignment().and_then(|given| given.skill.as_ref());
        names.extend(errand.filter(|name| !names.contains(name)).cloned());
        if names.is_empty() {
            return Vec::new();
        }
        let root = self.frame.root();
        let catalogue = self.active.shared.skills.of(root);
        let usable = names.iter().filter_map(|name| catalogue.get(name)).filter(|skill| skill.state == State::Ready);
        let outside = usable.filter_map(|skill| Some((format!("@skill/{}", skill.name), skill.folder.clone()?)));
        outside.filter(|(_, folder)| !folder.starts_with(root)).collect()
    }
}
