//! `demo`: a recorded model against real tools in a scratch project. It says that it is a recording.
//!
//! The journal, the loop, the gate, the tools and the face are the real ones; only the model is played. So what the
//! demo shows is what the product does, and it works without a key, a network or a terminal.

use std::path::Path;

use max_team_core::ledger::Price;
use max_team_core::team::{Model, Settings};
use max_team_llm::{Replay, Router};

use crate::exit::{Exit, Stop};

const FILES: [(&str, &str); 3] = [
    ("README.md", include_str!("../demo/project/README.md")),
    ("AGENTS.md", include_str!("../demo/project/AGENTS.md")),
    ("src/greet.py", include_str!("../demo/project/src/greet.py")),
];

/// What is played.
pub(crate) struct Tape {
    pub(crate) prompt: &'static str,
    pub(crate) intro: &'static str,
    pub(crate) outro: &'static str,
    recording: &'static str,
}

pub(crate) const ENGLISH: Tape = Tape {
    prompt: "Why does greet() shout at everyone? Please fix it.",
    intro: "This is a recording: the model's words were written beforehand. Everything else is real: the journal, \
            the tools, the questions, and the scratch project in",
    outro: "That was the demo. To work on your own project, set a key (for example ANTHROPIC_API_KEY) and run \
            max-team there.",
    recording: include_str!("../demo/en.yaml"),
};

pub(crate) const CHINESE: Tape = Tape {
    prompt: "greet() 为什么对所有人大喊大叫？请修复。",
    intro: "这是一段录制：模型的话是事先写好的。其余都是真实的：日志、工具、提问，以及这个临时项目：",
    outro: "演示结束。要在自己的项目里使用，请设置密钥（例如 ANTHROPIC_API_KEY），然后在项目目录运行 max-team。",
    recording: include_str!("../demo/zh.yaml"),
};

impl Tape {
    /// The recorded model; without pauses where nobody watches.
    pub(crate) fn router(&self, unattended: bool) -> Result<Router, Stop> {
        let text =
            if unattended { self.recording.replace("delta_ms: 12", "delta_ms: 0") } else { self.recording.to_owned() };
        let replay = Replay::read(&text).map_err(|error| Stop::new(Exit::Failed, error.to_string()))?;
        Ok(Router::replay(replay))
    }
}

/// The settings of the demo: the recorded model is free.
pub(crate) fn settings() -> Settings {
    Settings::new(Model {
        provider: "recording".into(),
        name: "recorded-model".into(),
        context_tokens: 200_000,
        max_tokens: 4_096,
        thinking_tokens: 0,
        price: Some(Price::FREE),
    })
}

/// Lays the scratch project out.
pub(crate) fn lay_out(root: &Path) -> Result<(), Stop> {
    let broken = |error: std::io::Error| {
        Stop::new(Exit::Failed, format!("cannot make the demo's project in `{}`: {error}", root.display()))
    };
    for (name, text) in FILES {
        let path = root.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(broken)?;
        }
        std::fs::write(path, text).map_err(broken)?;
    }
    Ok(())
}
