//! `demo`: recorded models against real tools in a scratch project. It says that they are a recording.
//!
//! The journal, the loop, the gate, the plan, the tools, the checks and the face are the real ones; only the models are
//! played. So what the demo shows is what the product does, and it works without a key, a network or a terminal. The
//! team is the built-in one: nothing of the user's own is read or changed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use max_team_core::ledger::Price;
use max_team_core::limits::CALL_DEPTH_DEFAULT;
use max_team_core::plan::event::Approve;
use max_team_core::team::{Model, Settings};
use max_team_llm::{Catalog, Replay, Router};
use max_team_runtime::{Open, Which};
use max_team_tools::command::{self, CommandError, Walls};
use tokio_util::sync::CancellationToken;

use crate::exit::{Exit, Stop};
use crate::models::Chosen;
use crate::setup::Place;
use crate::team::{self, PARALLEL_DEFAULT, Seated, Ways, Who};
use crate::words::Lang;

/// How long git may take for the first commit.
const GIT_WAIT: Duration = Duration::from_secs(10);
/// How long the command may take that tries whether commands can be isolated.
const TRIAL_WAIT: Duration = Duration::from_secs(10);

/// Names and texts.
type Files = &'static [(&'static str, &'static str)];

/// A story to be played.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// What it shows, on one line: in English and in Chinese.
    about: (&'static str, &'static str),
    base: Files,
    files: Files,
    english: Tape,
    chinese: Option<Tape>,
    /// What is said about the first plan where nobody sits (`--yes`).
    pub(crate) objection: Option<&'static str>,
}

/// What is asked, and what is played.
pub(crate) struct Tape {
    pub(crate) prompt: &'static str,
    recording: &'static str,
}

/// The files of a project, as they lie in `demo/` or among the examples.
macro_rules! files {
    ($folder:literal: $($name:literal)+) => {
        &[$(($name, include_str!(concat!("../demo/", $folder, "/", $name)))),+]
    };
    (example $folder:literal: $($name:literal)+) => {
        &[$(($name, include_str!(concat!("../../../examples/", $folder, "/", $name)))),+]
    };
}

/// What every project has that is a program.
const BASE: Files = files!("base": "AGENTS.md" "tests/run.sh" "tests/expect.sh");

/// The names, as they are typed.
pub(crate) const NAMES: [&str; 8] = ["team", "feature", "bug-hunt", "refactor", "fix", "replan", "travel", "teammates"];

/// The first is played if none is named.
static SCENARIOS: [Scenario; 8] = [
    Scenario {
        name: "team",
        about: (
            "the whole team on a bug: Ada and Sam side by side, Leo fails a check and mends it, Ray tests",
            "整个团队修一个错误：Ada 与 Sam 并行，Leo 的检查失败后修好，Ray 测试",
        ),
        base: BASE,
        files: files!("team": "README.md" "till.sh" "lib/total.sh" "log/till.log" "tests/total_test.sh"),
        english: Tape {
            prompt: "Three coffees cost as much as one since this morning. Please find out why, fix it and test it.",
            recording: include_str!("../demo/team.en.yaml"),
        },
        chinese: Some(Tape {
            prompt: "从今天早上起，三杯咖啡只算一杯的钱。请查明原因，修复并加上测试。",
            recording: include_str!("../demo/team.zh.yaml"),
        }),
        objection: None,
    },
    Scenario {
        name: "feature",
        about: (
            "a feature in three steps: Ada designs, Leo builds, Ray tests",
            "三步完成一个功能：Ada 设计，Leo 实现，Ray 测试",
        ),
        base: BASE,
        files: files!("feature": "README.md" "notes.sh" "notes.txt" "tests/list_test.sh" "tests/sample.txt"),
        english: Tape {
            prompt: "I want to find notes by a word: `notes.sh find WORD`.",
            recording: include_str!("../demo/feature.yaml"),
        },
        chinese: None,
        objection: None,
    },
    Scenario {
        name: "bug-hunt",
        about: (
            "a fault that nobody understands: Sam reads the log and Ada the code, then Leo mends and Ray guards",
            "一个原因不明的故障：Sam 读日志，Ada 读代码，Leo 修复，Ray 加测试",
        ),
        base: BASE,
        files: files!("bug-hunt": "README.md" "report.sh" "lib/hours.sh" "log/nightly.log" "tests/hours_test.sh"),
        english: Tape {
            prompt: "The report fails every morning at eight and at nine, and only then. What is it?",
            recording: include_str!("../demo/bug-hunt.yaml"),
        },
        chinese: None,
        objection: None,
    },
    Scenario {
        name: "refactor",
        about: (
            "three Leos at once, each with a file of their own, and one check of it all",
            "三个 Leo 同时工作，各改一个文件，最后统一检查",
        ),
        base: BASE,
        files: files!("refactor": "README.md" "lib/fail.sh" "commands/put.sh" "commands/take.sh" "commands/find.sh"
            "tests/words_test.sh"),
        english: Tape {
            prompt: "Every command fails in words of its own. Make them all use lib/fail.sh.",
            recording: include_str!("../demo/refactor.yaml"),
        },
        chinese: None,
        objection: None,
    },
    Scenario {
        name: "fix",
        about: (
            "a test that fails starts the task that was waiting for it: `when: test.failed`",
            "测试失败会启动等待它的任务：`when: test.failed`",
        ),
        base: BASE,
        files: files!("fix": "README.md" "leap.sh" "lib/leap.sh" "tests/leap_test.sh"),
        english: Tape {
            prompt: "Are leap years right at the turn of a century? Test it, and fix it if they are not.",
            recording: include_str!("../demo/fix.yaml"),
        },
        chinese: None,
        objection: None,
    },
    Scenario {
        name: "replan",
        about: (
            "a plan that is sent back, and a better one; ask for changes at the gate",
            "计划被退回，再给出更好的计划；在批准时要求修改",
        ),
        base: BASE,
        files: files!("replan": "README.md" "greet.sh" "tests/greet_test.sh"),
        english: Tape { prompt: "Fix the typo in the greeting.", recording: include_str!("../demo/replan.yaml") },
        chinese: None,
        objection: Some("too much for a typo: no design and no more tests, but keep the README in step"),
    },
    Scenario {
        name: "travel",
        about: (
            "three experts one after the other: the weather decides about the train, and the train about the hotel",
            "三位专家先后工作：天气决定火车，火车决定酒店",
        ),
        base: &[],
        files: files!(example "travel": "README.md" "agents/weather.md" "agents/train.md" "agents/hotel.md"
            "data/weather.json" "data/trains.json" "data/hotels.json"),
        english: Tape {
            prompt: "I am off to Beijing tomorrow from Shanghai, for three days. What do I need to know?",
            recording: include_str!("../../../examples/travel/recording.en.yaml"),
        },
        chinese: Some(Tape {
            prompt: "明天从上海去北京出差，待三天。",
            recording: include_str!("../../../examples/travel/recording.zh.yaml"),
        }),
        objection: None,
    },
    Scenario {
        name: "teammates",
        about: (
            "two who stay and write to each other: Alice writes a format down, Bob plans, asks her and builds on it",
            "两位常驻队友互相通信：Alice 写下格式，Bob 制定计划、向她提问并据此实现",
        ),
        base: &[],
        files: files!("teammates": "README.md" "sales.csv"),
        english: Tape {
            prompt: "Have somebody write down what sales.csv means, and somebody else build a program that adds it up.",
            recording: include_str!("../demo/teammates.yaml"),
        },
        chinese: None,
        objection: None,
    },
];

/// The scenario of this name; the first without one.
pub(crate) fn scenario(name: Option<&str>) -> Result<&'static Scenario, Stop> {
    let wanted = name.unwrap_or(NAMES[0]);
    let unknown = || Stop::said(Exit::Usage, |lang| lang.no_demo(wanted, &NAMES.join(", ")));
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

/// What is said before and after.
pub(crate) fn words(lang: Lang) -> (&'static str, &'static str) {
    match lang {
        Lang::En => (
            "This is a recording: the models' words were written beforehand. Everything else is real: the journal, the \
             plan, the tools, the checks, and the scratch project in",
            "That was the demo; `max-team demo --list` names more. To work on your own project, set a key (for example \
             ANTHROPIC_API_KEY) and run max-team there.",
        ),
        Lang::Zh => (
            "这是一段录制：模型的话是事先写好的。其余都是真实的：日志、计划、工具、检查，以及这个临时项目：",
            "演示结束；`max-team demo --list` 列出更多演示。要在自己的项目里使用，请设置密钥（例如 \
             ANTHROPIC_API_KEY），然后在项目目录运行 max-team。",
        ),
    }
}

impl Scenario {
    /// What is played in a language.
    pub(crate) fn tape(&self, lang: Lang) -> &Tape {
        self.chinese.as_ref().filter(|_| lang == Lang::Zh).unwrap_or(&self.english)
    }

    /// Lays the scratch project out; under version control, where there is any.
    pub(crate) fn lay_out(&self, root: &Path) -> Result<(), Stop> {
        let broken = |error: std::io::Error| {
            Stop::new(Exit::Failed, format!("cannot make the demo's project in `{}`: {error}", root.display()))
        };
        for (name, text) in self.base.iter().chain(self.files) {
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

impl Tape {
    /// The recorded models; without pauses where nobody watches. Beyond their recording they say so.
    pub(crate) fn router(&self, unattended: bool, lang: Lang) -> Result<Router, Stop> {
        let replay = Replay::read(self.recording).map_err(|error| Stop::new(Exit::Failed, error.to_string()))?;
        let replay = replay.ending_with(lang.demo_is_over());
        Ok(Router::replay(if unattended { replay.at_once() } else { replay }))
    }
}

/// Tries to run a command in the scratch project as agents do; says why that cannot be.
pub(crate) fn try_sandbox(root: &Path) -> Result<(), String> {
    // The one program that every demo needs.
    let argv = ["sh", "-c", ":"].map(str::to_owned);
    let ran = command::run(&argv, root, TRIAL_WAIT, Some(&Walls::around(root)), &CancellationToken::new());
    match ran {
        Ok(ran) if ran.ok() => Ok(()),
        Ok(ran) => Err(ran.output.trim().to_owned()),
        Err(CommandError::NoWalls { why, .. }) => Err(why),
        Err(error) => Err(error.to_string()),
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
pub(crate) fn open(place: &Place, router: Router) -> Result<Open, Stop> {
    // The recorded model is free.
    let model = Model {
        provider: "recording".into(),
        name: "recorded-model".into(),
        context_tokens: 200_000,
        max_tokens: 4_096,
        thinking_tokens: 0,
        price: Some(Price::FREE),
    };
    let settings = Settings::new(model.clone());
    let key_source = "none".to_owned();
    let catalog = Arc::new(Catalog::builtin().clone());
    let chosen = Chosen { model, fallback: None, fast: None, key_source, router, catalog };
    // What was recorded knows nobody whom the user has added since.
    let place = Place { env: place.env.of_nobody(), ..place.clone() };
    let (led, _) = team::read(None, &place)?;
    let (approve, max_parallel) = (Approve::Plan, PARALLEL_DEFAULT);
    let ways = Ways { approve, max_parallel, call_depth: CALL_DEPTH_DEFAULT, coordinator: false };
    let Seated { definition, settings, team, .. } = Who::Team(led).seat(&chosen, &settings, ways)?;
    Ok(Open { which: Which::New, definition, settings, schema: None, team })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_story_that_can_be_played() {
        assert_eq!(SCENARIOS.each_ref().map(|scenario| scenario.name), NAMES);
        for scenario in &SCENARIOS {
            for lang in [Lang::En, Lang::Zh] {
                assert!(scenario.tape(lang).router(true, lang).is_ok(), "{}", scenario.name);
            }
            assert!(!scenario.about.0.contains('\n') && !scenario.about.1.contains('\n') && !scenario.files.is_empty());
        }
    }
}
