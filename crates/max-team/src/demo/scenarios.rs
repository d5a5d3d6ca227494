//! The stories that `demo` plays: a project, a prompt and a recording in each language.

use super::{DemoRecording, Scenario};
use max_team_workspace::i18n::Lang;

/// Files by name, with their texts.
pub(super) type Files = &'static [(&'static str, &'static str)];

/// The files of a project, as they lie in `demo/` or among the examples.
macro_rules! files {
    ($folder:literal: $($name:literal)+) => {
        &[$(($name, include_str!(concat!("../../demo/", $folder, "/", $name)))),+]
    };
    (example $folder:literal: $($name:literal)+) => {
        &[$(($name, include_str!(concat!("../../../../examples/", $folder, "/", $name)))),+]
    };
}

/// What is played in English: the prompt and the recording.
macro_rules! english {
    ($name:literal, $prompt:literal) => {
        DemoRecording {
            prompt: $prompt,
            recording: include_str!(concat!("../../demo/", $name, ".en.yaml")),
            files: &[],
            objection: None,
        }
    };
}

/// What is played in Chinese, with the files of the project that are written in Chinese.
macro_rules! chinese {
    ($name:literal, $prompt:literal, $($file:literal)+) => {
        DemoRecording {
            prompt: $prompt,
            recording: include_str!(concat!("../../demo/", $name, ".zh.yaml")),
            files: &[$(($file, include_str!(concat!("../../demo/zh/", $name, "/", $file)))),+],
            objection: None,
        }
    };
}

/// The files of every project that is a program.
const BASE: Files = files!("base": "AGENTS.md" "tests/run.sh" "tests/expect.sh");
/// Those of them that are written in Chinese.
const BASE_ZH: Files = files!("zh/base": "AGENTS.md" "tests/expect.sh");

/// The names, as they are typed.
pub(crate) const NAMES: [&str; 9] =
    ["team", "feature", "bug-hunt", "refactor", "fix", "replan", "travel", "teammates", "mcp"];

/// The first is played if none is named.
pub(super) static SCENARIOS: [Scenario; 9] = [
    Scenario {
        name: "team",
        about: (
            "the whole team on a bug: Ada and Sam side by side, Leo fails a check and mends it, Ray tests",
            "整个团队修一个错误：Ada 与 Sam 并行，Leo 的检查失败后修好，Ray 测试",
        ),
        is_program: true,
        files: files!("team": "README.md" "till.sh" "lib/total.sh" "log/till.log" "tests/total_test.sh"),
        english: english!(
            "team",
            "Three coffees cost as much as one since this morning. Please find out why, fix it and test it."
        ),
        chinese: chinese!(
            "team",
            "从今天早上起，三杯咖啡只算一杯的钱。请查明原因，修复并加上测试。",
            "README.md" "tests/total_test.sh"
        ),
    },
    Scenario {
        name: "feature",
        about: (
            "a feature in three steps: Ada designs, Leo builds, Ray tests",
            "三步完成一个功能：Ada 设计，Leo 实现，Ray 测试",
        ),
        is_program: true,
        files: files!("feature": "README.md" "notes.sh" "notes.txt" "tests/list_test.sh" "tests/sample.txt"),
        english: english!("feature", "I want to find notes by a word: `notes.sh find WORD`."),
        chinese: chinese!("feature", "我想按一个词查找笔记：`notes.sh find WORD`。", "README.md"),
    },
    Scenario {
        name: "bug-hunt",
        about: (
            "a fault of unknown cause: Sam reads the log and Ada the code, then Leo mends and Ray guards",
            "一个原因不明的故障：Sam 读日志，Ada 读代码，Leo 修复，Ray 加测试",
        ),
        is_program: true,
        files: files!("bug-hunt": "README.md" "report.sh" "lib/hours.sh" "log/nightly.log" "tests/hours_test.sh"),
        english: english!(
            "bug-hunt",
            "The report fails every morning at eight and at nine, and only then. What is it?"
        ),
        chinese: chinese!("bug-hunt", "报告每天早上八点和九点失败，而且只在这两个钟点。是什么原因？", "README.md"),
    },
    Scenario {
        name: "refactor",
        about: (
            "three Leos at once, each with a file of their own, and one check of it all",
            "三个 Leo 同时工作，各改一个文件，最后统一检查",
        ),
        is_program: true,
        files: files!("refactor": "README.md" "lib/fail.sh" "commands/put.sh" "commands/take.sh" "commands/find.sh"
            "tests/words_test.sh"),
        english: english!("refactor", "Every command fails in words of its own. Make them all use lib/fail.sh."),
        chinese: chinese!("refactor", "每个命令报错的方式都不一样。让它们都使用 lib/fail.sh。", "README.md"),
    },
    Scenario {
        name: "fix",
        about: (
            "a test that fails starts the task that was waiting for it: `when: test.failed`",
            "测试失败会启动等待它的任务：`when: test.failed`",
        ),
        is_program: true,
        files: files!("fix": "README.md" "leap.sh" "lib/leap.sh" "tests/leap_test.sh"),
        english: english!("fix", "Are leap years right at the turn of a century? Test it, and fix it if they are not."),
        chinese: chinese!("fix", "世纪之交的闰年判断得对吗？请测试，不对就修复。", "README.md"),
    },
    Scenario {
        name: "replan",
        about: (
            "a plan that is sent back, and a better one; ask for changes at the gate",
            "计划被退回，再给出更好的计划；在批准时要求修改",
        ),
        is_program: true,
        files: files!("replan": "README.md" "greet.sh" "tests/greet_test.sh"),
        english: DemoRecording {
            objection: Some("too much for a typo: no design and no more tests, but keep the README in step"),
            ..english!("replan", "Fix the typo in the greeting.")
        },
        chinese: DemoRecording {
            objection: Some("一个拼写错误用不着这么多：不要设计，也不要更多测试，但 README 要保持一致"),
            ..chinese!("replan", "改正问候语里的拼写错误。", "README.md")
        },
    },
    Scenario {
        name: "travel",
        about: (
            "four experts with recorded pages of the web: weather, train and hotel side by side, then earthquakes",
            "四位专家读取录制的网页：同时查天气、火车和酒店，再查地震",
        ),
        is_program: false,
        files: files!(example "travel": "README.md"),
        english: DemoRecording {
            prompt: "I am off to Beijing tomorrow from Shanghai, for three days. What do I need to know?",
            recording: include_str!("../../../../examples/travel/recording.en.yaml"),
            files: &[],
            objection: None,
        },
        chinese: DemoRecording {
            prompt: "明天从上海去北京出差，待三天。",
            recording: include_str!("../../../../examples/travel/recording.zh.yaml"),
            files: &[("README.md", include_str!("../../../../examples/travel/README.zh-CN.md"))],
            objection: None,
        },
    },
    Scenario {
        name: "teammates",
        about: (
            "two who stay and write to each other: Alice writes a format down, Bob plans, asks her and builds on it",
            "两位常驻队友互相通信：Alice 写下格式，Bob 制定计划、向她提问并据此实现",
        ),
        is_program: false,
        files: files!("teammates": "README.md" "sales.csv"),
        english: english!(
            "teammates",
            "I need a page that says what sales.csv means, and a program that adds it up. Let two teammates work on it."
        ),
        chinese: chinese!(
            "teammates",
            "我需要一页文档说明 sales.csv 的含义，和一个计算总额的程序。请让两位队友来做。",
            "README.md"
        ),
    },
    Scenario {
        name: "mcp",
        about: (
            "an MCP server: Max looks at a shop's stock freely, and ordering more asks first",
            "一个 MCP 服务器：Max 可随意查看商店库存，下单则先询问",
        ),
        is_program: false,
        files: files!(example "mcp": "README.md" ".mcp.json" "stock-server.sh"),
        english: DemoRecording {
            prompt: "We are running out of something in the shop. Find out what, and order more.",
            recording: include_str!("../../../../examples/mcp/recording.en.yaml"),
            files: &[],
            objection: None,
        },
        chinese: DemoRecording {
            prompt: "店里有东西快卖完了。查出是什么，然后补货。",
            recording: include_str!("../../../../examples/mcp/recording.zh.yaml"),
            files: &[("README.md", include_str!("../../../../examples/mcp/README.zh-CN.md"))],
            objection: None,
        },
    },
];

impl Scenario {
    /// The files of its project in a language. A later file replaces an earlier one of the same name.
    pub(super) fn files(&self, lang: Lang) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
        let base: [Files; 2] = match lang {
            _ if !self.is_program => [&[], &[]],
            Lang::En => [BASE, &[]],
            Lang::Zh => [BASE, BASE_ZH],
        };
        let [first, second] = base;
        first.iter().chain(second).chain(self.files).chain(self.tape(lang).files)
    }
}
