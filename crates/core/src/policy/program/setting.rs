//! Settings that a program gets as `name=value`: `make CC=…`, `cmake -DNAME=…`, `mvn -Dname=…`, and variables before a
//! command.
//!
//! Most choose a variant of the build. A few name a program, its flags or a path outside the project; those are
//! recognized by their names and by the form of their values.

use super::CommandEffect;
use crate::policy::HiddenReason;

/// Names that stand for a program, or for the flags of one.
const PROGRAMS: [&str; 17] = [
    "cc", "cpp", "cxx", "ld", "ar", "as", "ranlib", "strip", "make", "path", "jvm", "rustc", "cargo", "python", "java",
    "go", "node",
];
/// Parts of the names of settings that load programs or code.
const PARTS: [&str; 24] = [
    "agent",
    "argline",
    "class.path",
    "classpath",
    "command",
    "compiler",
    "exec",
    "ext.",
    "flags",
    "hook",
    "include",
    "init",
    "java.home",
    "jvmargs",
    "launcher",
    "linker",
    "makefile",
    "opts",
    "plugin",
    "preload",
    "program",
    "shell",
    "toolchain",
    "wrapper",
];

/// The side effect of a setting; `None` if it has none.
pub(super) fn setting(text: &str) -> Option<CommandEffect> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    // `-p:Name=Value`, `-DNAME:STRING=value`.
    let name = name.trim_start_matches(':').split(':').next().unwrap_or(name).to_lowercase();
    let is_code = PROGRAMS.contains(&name.as_str()) || PARTS.iter().any(|part| name.contains(part));
    let is_odd = value.contains(['$', '`', ';', '|', '&', '<', '>', '(', '\\', '\n', '\'', '"', '!', '*'])
        || value.split_whitespace().any(|word| word.starts_with(['-', '/', '~', '@']) || word.contains(".."));
    (is_code || is_odd).then(|| CommandEffect::Code(HiddenReason::Setting(name.to_owned())))
}

/// Variables that change how something is shown, or which variant is built, and nothing else.
const SAFE: [&str; 36] = [
    "BABEL_ENV",
    "CARGO_INCREMENTAL",
    "CARGO_TERM_COLOR",
    "CGO_ENABLED",
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "DEBUG",
    "FORCE_COLOR",
    "GIT_OPTIONAL_LOCKS",
    "GIT_TERMINAL_PROMPT",
    "GOARCH",
    "GOMAXPROCS",
    "GOOS",
    "INSTA_UPDATE",
    "LANG",
    "LANGUAGE",
    "LINES",
    "NODE_ENV",
    "NO_COLOR",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
    "RAILS_ENV",
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "RUST_LOG",
    "RUST_MIN_STACK",
    "RUST_TEST_THREADS",
    "TERM",
    "TZ",
    "VERBOSE",
    "npm_config_loglevel",
];
/// Variables that name the program that shows the output.
const PAGERS: [&str; 4] = ["PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER"];
/// Variables that are lists of folders with code.
const FOLDERS: [&str; 3] = ["PYTHONPATH", "NODE_PATH", "RUBYLIB"];

/// The effect of a variable before a command.
pub(in crate::policy) fn variable(name: &str, value: &str) -> Vec<CommandEffect> {
    if SAFE.contains(&name) || name.starts_with("LC_") || (PAGERS.contains(&name) && matches!(value, "" | "cat")) {
        return Vec::new();
    }
    if FOLDERS.contains(&name) {
        return value
            .split(':')
            .filter(|part| !part.is_empty())
            .map(|part| CommandEffect::Read(part.to_owned()))
            .collect();
    }
    if name == "CARGO_TARGET_DIR" {
        return vec![CommandEffect::Write(value.to_owned())];
    }
    vec![CommandEffect::Code(HiddenReason::Variable(name.to_owned()))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_choose_and_settings_that_run() {
        for text in [
            "V=1",
            "skipTests",
            "CMAKE_BUILD_TYPE=Release",
            "test=FooTest#bar",
            "DEBUG",
            "TESTS=a b",
            "BUILD_TESTING:BOOL=ON",
        ] {
            assert_eq!(setting(text), None, "{text}");
        }
        for text in [
            "SHELL=/tmp/x",
            "CC=evil",
            "CFLAGS=-O2",
            "MAKEFLAGS=x",
            "PREFIX=/usr",
            "OUT=../x",
            "ARGS=a; git push",
            "ARGS=-exec evil",
            "CMAKE_C_COMPILER_LAUNCHER=evil",
            "CMAKE_TOOLCHAIN_FILE=x.cmake",
            "CMAKE_PROJECT_INCLUDE:FILEPATH=x",
            "maven.ext.class.path=x",
            "argLine=x",
            "exec.executable=sh",
            "org.gradle.jvmargs=x",
            "org.gradle.java.home=x",
            ":CustomBeforeMicrosoftCommonTargets=../x",
        ] {
            assert!(setting(text).is_some(), "{text}");
        }
    }
}
