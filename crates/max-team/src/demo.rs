//! `demo`: recorded models against real tools in a scratch project. It says that they are a recording.
//!
//! The journal, the loop, the gate, the plan, the tools, the checks and the face are the real ones; only the models are
//! played. So what the demo shows is what the product does, and it works without a key, a network or a terminal. The
//! team is the built-in one: nothing of the user's own is read or changed.

mod scenarios;
mod scratch;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use max_team_core::agent::{Model, Settings};
use max_team_core::ledger::Price;
use max_team_core::limits::CALL_DEPTH_DEFAULT;
use max_team_core::plan::event::ApprovalMode;
use max_team_llm::{Catalog, Replay, Router};
use max_team_runtime::{OpenOptions, TeamHandle, Which};
use max_team_tools::RecordedPages;
use max_team_tools::command::{self, CommandError, CommandSandbox};
use tokio_util::sync::CancellationToken;

use crate::args::TalkFlags;
use crate::flags;
use max_team_workspace::config::Config;
use max_team_workspace::exit::{CliError, Exit};
use max_team_workspace::i18n::Lang;
use max_team_workspace::mcp::{self, FoundServers};
use max_team_workspace::models::ChosenModel;
use max_team_workspace::selection::Selection;
use max_team_workspace::setup::{self, AppEnv};
use max_team_workspace::team::{self, LeadKind, PARALLEL_DEFAULT, SessionLead, TeamOptions};

pub(crate) use scenarios::NAMES;
use scenarios::{Files, SCENARIOS};
use scratch::ScratchFolder;

/// How long git may take for the first commit.
const GIT_WAIT: Duration = Duration::from_secs(10);
/// How long the command may take that tries whether commands can be isolated.
const TRIAL_WAIT: Duration = Duration::from_secs(10);

/// A story to be played.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// What it shows, on one line: in English and in Chinese.
    about: (&'static str, &'static str),
    /// Whether its project is a program with tests.
    is_program: bool,
    /// The files of its project.
    files: Files,
    english: DemoRecording,
    chinese: DemoRecording,
}

/// The prompt and the recording in one language.
pub(crate) struct DemoRecording {
    pub(crate) prompt: &'static str,
    recording: &'static str,
    /// The files of the project that are written in this language.
    files: Files,
    /// The answer to the first plan without a user (`--yes`).
    pub(crate) objection: Option<&'static str>,
}

/// The scenario of this name; the first without one.
pub(crate) fn scenario(name: Option<&str>) -> Result<&'static Scenario, CliError> {
    let wanted = name.unwrap_or(NAMES[0]);
    let unknown = || CliError::said(Exit::Usage, |lang| lang.no_demo(wanted, NAMES.join(", ")));
    SCENARIOS.iter().find(|scenario| scenario.name == wanted).ok_or_else(unknown)
}

/// A line for each, for `--list`.
pub(crate) fn list(lang: Lang) -> String {
    let about = |(english, chinese): (&'static str, &'static str)| match lang {
        Lang::En => english,
        Lang::Zh => chinese,
    };
    SCENARIOS.iter().map(|scenario| format!("{:<11}{}\n", scenario.name, about(scenario.about))).collect()
}

/// What is said before and after a recording, which may have pages of the web.
pub(crate) fn words(lang: Lang, has_pages: bool) -> (&'static str, &'static str) {
    let (intro, outro) = match lang {
        Lang::En => (
            [
                "This is a recording: the models' words were written beforehand. Everything else is real: the journal, the \
                 plan, the tools, the checks, and the scratch project in",
                "This is a recording: the models' words and the pages of the web were written beforehand. Everything else is \
                 real: the journal, the tools, the permissions, and the scratch project in",
            ],
            "That was the demo; `max-team demo --list` names more. To work on your own project, set a key (for example \
             ANTHROPIC_API_KEY) and run max-team there.",
        ),
        Lang::Zh => (
            [
                "这是一段录制：模型的话是事先写好的。其余都是真实的：日志库、计划、工具、检查，以及这个临时项目：",
                "这是一段录制：模型的话和网页是事先写好的。其余都是真实的：日志库、工具、权限，以及这个临时项目：",
            ],
            "演示结束；`max-team demo --list` 列出更多演示。要在自己的项目里使用，请设置密钥（例如 \
             ANTHROPIC_API_KEY），然后在项目目录运行 max-team。",
        ),
    };
    let [without_pages, with_pages] = intro;
    (if has_pages { with_pages } else { without_pages }, outro)
}

impl Scenario {
    /// What is played in a language.
    pub(crate) fn tape(&self, lang: Lang) -> &DemoRecording {
        match lang {
            Lang::En => &self.english,
            Lang::Zh => &self.chinese,
        }
    }

    /// Lays the project out again beside the first one, for a session that begins with it.
    pub(crate) fn lay_out_beside(&self, first: &Path, lang: Lang) -> Result<PathBuf, CliError> {
        let is_free = |root: &PathBuf| !root.exists();
        let mut names = (2_u32..).map(|number| first.with_file_name(format!("{}-{number}", self.name)));
        let root = names.find(is_free).unwrap_or_else(|| first.to_owned());
        self.lay_out(&root, lang)?;
        Ok(root)
    }

    /// Lays the scratch project out; under version control, where there is any.
    fn lay_out(&self, root: &Path, lang: Lang) -> Result<(), CliError> {
        let broken = |error: std::io::Error| {
            CliError::new(Exit::Failed, format!("cannot make the demo's project in `{}`: {error}", root.display()))
        };
        for (name, text) in self.files(lang) {
            let path = root.join(name);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent).map_err(broken)?;
            }
            std::fs::write(path, text).map_err(broken)?;
        }
        first_commit(root);
        Ok(())
    }
}

impl DemoRecording {
    /// The recorded models and pages; `unattended` plays the models without pauses. After the end of the recording they say that
    /// it is over.
    fn read(&self, unattended: bool, lang: Lang) -> Result<(Router, RecordedPages), CliError> {
        let broken = |words: String| CliError::new(Exit::Failed, words);
        let mut replay = Replay::read(self.recording).map_err(|error| broken(error.to_string()))?;
        let pages = RecordedPages::read(replay.take_pages()).map_err(broken)?;
        let replay = replay.ending_with(lang.demo_is_over());
        Ok((Router::replay(if unattended { replay.at_once() } else { replay }), pages))
    }
}

/// Tries to run a command in the scratch project as agents do; says why that cannot be.
fn try_sandbox(root: &Path) -> Result<(), String> {
    // The one program that every demo needs.
    let argv = ["sh", "-c", ":"].map(str::to_owned);
    let ran = command::run(&argv, root, TRIAL_WAIT, Some(&CommandSandbox::around(root)), &CancellationToken::new());
    match ran {
        Ok(ran) if ran.ok() => Ok(()),
        Ok(ran) => Err(ran.output.trim().to_owned()),
        Err(CommandError::NoSandbox { why, .. }) => Err(why),
        Err(error) => Err(error.to_string()),
    }
}

/// A demo that is ready to be played: a scratch project, and a team with recorded models in it.
pub(crate) struct DemoStage {
    /// Removed at the end, unless it is kept.
    pub(crate) scratch: Option<ScratchFolder>,
    pub(crate) root: PathBuf,
    /// In the project, with a home of its own.
    pub(crate) place: AppEnv,
    pub(crate) config: Config,
    pub(crate) open: OpenOptions,
    pub(crate) team: TeamHandle,
    /// Why commands run without a sandbox, if they do.
    pub(crate) unsandboxed: Option<String>,
    /// Whether pages of the web are recorded.
    pub(crate) has_pages: bool,
}

impl DemoStage {
    /// In a folder that is removed at the end. `is_watched` plays the models at the speed of a reader.
    pub(crate) fn new(place: &AppEnv, scenario: &Scenario, lang: Lang, is_watched: bool) -> anyhow::Result<Self> {
        let scratch = ScratchFolder::make()?;
        let stage = Self::within(scratch.folder.path(), place, scenario, lang, is_watched)?;
        Ok(Self { scratch: Some(scratch), ..stage })
    }

    /// In the folder that `MAX_TEAM_HOME` names, so that the next process goes on with unfinished sessions; in one that is removed at
    /// the end if the variable is not set. Each demo has a journal of its own there: its sessions fit its recording only.
    pub(crate) fn kept(place: &AppEnv, scenario: &Scenario, lang: Lang) -> anyhow::Result<Self> {
        if place.env.get("MAX_TEAM_HOME").is_none_or(str::is_empty) {
            return Self::new(place, scenario, lang, true);
        }
        let folder = place.home.join("demo").join(scenario.name);
        std::fs::create_dir_all(&folder)?;
        Self::within(&folder, place, scenario, lang, true)
    }

    fn within(
        folder: &Path,
        place: &AppEnv,
        scenario: &Scenario,
        lang: Lang,
        is_watched: bool,
    ) -> anyhow::Result<Self> {
        let mut config = place.settings(None, flags::overrides(&TalkFlags::default()))?;
        config.audit.enabled = false;
        let folder = folder.canonicalize()?;
        setup::check_name(&folder, None)?;
        let root = folder.join(scenario.name);
        if !root.exists() {
            scenario.lay_out(&root, lang)?;
        }
        let away = AppEnv { cwd: root.clone(), home: folder.join("home"), ..place.clone() };
        let (router, pages) = scenario.tape(lang).read(!is_watched, lang)?;
        let has_pages = !pages.is_empty();
        let missing = try_sandbox(&root).err();
        let sandboxed = missing.is_none();
        let unsandboxed = missing.map(|why| format!("{}\n", lang.demo_unsandboxed(why)));
        let storage = away.storage(config.journal.sync).map_err(|error| setup::stop(&error))?;
        config.project.sandbox &= sandboxed;
        let open = open(&away, router.clone(), &config)?;
        // The demo's own servers, and none of the user's.
        let list = root.join(mcp::PROJECT_FILE);
        let mcp_config = list.exists().then(|| list.display().to_string()).into_iter().collect();
        let only = Selection { mcp_config, strict_mcp_config: true, ..Selection::default() };
        let found = FoundServers::read(&away, &config, &root, &only)?;
        let sources = mcp::servers(&away, &config, &root, found.entries(&[]));
        let also = setup::RuntimeParts { remember: None, sources, recorded_pages: Some(Arc::new(pages)) };
        let team = setup::runtime_within(&away, &config, storage, router, "the demo", sandboxed, also)?;
        Ok(Self { scratch: None, root, place: away, config, open, team, unsandboxed, has_pages })
    }
}

/// Git is not needed: without it there is no diff to show, and that is all.
fn first_commit(root: &Path) {
    let own = ["-c", "user.name=max-team", "-c", "user.email=demo@max-team.invalid", "-c", "commit.gpgsign=false"];
    let init = vec!["init", "-q"];
    let commit = [&own[..], &["commit", "-q", "--no-verify", "-m", "The project as it was found"]].concat();
    for words in [init, vec!["add", "."], commit] {
        let argv: Vec<String> = ["git"].into_iter().chain(words).map(str::to_owned).collect();
        let ran = command::run(&argv, root, GIT_WAIT, None, &CancellationToken::new());
        if !ran.is_ok_and(|ran| ran.ok()) {
            return;
        }
    }
}

/// The session of the demo: the built-in team, all with the recorded model. `place` is in the scratch project, which
/// has no team of its own.
fn open(place: &AppEnv, router: Router, config: &Config) -> Result<OpenOptions, CliError> {
    // The recorded model is free.
    let model = Model {
        provider: "recording".into(),
        name: "recorded-model".into(),
        context_tokens: 200_000,
        max_tokens: 4_096,
        thinking_tokens: 0,
        price: Some(Price::FREE),
    };
    let settings = setup::with_sandbox(config, Settings::new(model.clone()));
    let key_source = "none".to_owned();
    let catalog = Arc::new(Catalog::builtin().clone());
    let chosen = ChosenModel { model, fallback: None, fast: None, key_source, router, catalog };
    // The recording was made without the user's own agents and settings.
    let place = AppEnv { env: place.env.of_nobody(), ..place.clone() };
    let (led, _) = team::read(None, &place)?;
    let (approve, max_parallel) = (ApprovalMode::Plan, PARALLEL_DEFAULT);
    let ways = TeamOptions { approve, max_parallel, call_depth: CALL_DEPTH_DEFAULT, coordinator: false };
    let SessionLead { definition, settings, team, .. } = LeadKind::Team(led).seat(&chosen, &settings, ways)?;
    Ok(OpenOptions::new(Which::New, definition, settings, team))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_story_that_can_be_played() {
        assert_eq!(SCENARIOS.each_ref().map(|scenario| scenario.name), NAMES);
        for scenario in &SCENARIOS {
            for lang in [Lang::En, Lang::Zh] {
                assert!(scenario.tape(lang).read(true, lang).is_ok(), "{}", scenario.name);
            }
            assert!(!scenario.about.0.contains('\n') && !scenario.about.1.contains('\n') && !scenario.files.is_empty());
        }
    }
}
