//! Package managers, the commands with which they install, and the registries that an approved plan opens to them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A program that installs packages from registries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PackageManager {
    Npm,
    Pnpm,
    Yarn,
    Pip,
    Uv,
    Cargo,
    Go,
}

impl PackageManager {
    pub const ALL: [PackageManager; 7] =
        [Self::Npm, Self::Pnpm, Self::Yarn, Self::Pip, Self::Uv, Self::Cargo, Self::Go];

    /// The name of its program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pnpm => "pnpm",
            Self::Yarn => "yarn",
            Self::Pip => "pip",
            Self::Uv => "uv",
            Self::Cargo => "cargo",
            Self::Go => "go",
        }
    }

    /// The package manager of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|manager| manager.name() == name)
    }

    /// The package manager with which a command installs.
    pub fn installing(argv: &[String]) -> Option<Self> {
        let mut words = argv.iter().map(String::as_str).filter(|word| !word.starts_with('-'));
        let program = words.next()?;
        let (name, rest) = match (program.rsplit('/').next().unwrap_or(program), words.collect::<Vec<_>>()) {
            // `-m` is a flag.
            (python, rest) if python.starts_with("python") && rest.first() == Some(&"pip") => {
                ("pip", rest.get(1..).unwrap_or_default().to_vec())
            }
            ("pip3", rest) => ("pip", rest),
            (name, rest) => (name, rest),
        };
        let installs: &[&str] = match name {
            "npm" => &["install", "i", "add", "ci", "clean-install", "update"],
            "pnpm" => &["install", "i", "add", "update", "up"],
            // `yarn` alone installs.
            "yarn" if rest.is_empty() => return Some(Self::Yarn),
            "yarn" => &["install", "add", "up", "upgrade"],
            "pip" => &["install", "download", "wheel"],
            "uv" if matches!(rest.as_slice(), ["pip" | "tool", "install", ..]) => return Some(Self::Uv),
            "uv" => &["sync", "add", "lock"],
            "cargo" => &["fetch", "add", "update", "install", "vendor", "generate-lockfile"],
            "go" if matches!(rest.as_slice(), ["mod", "download" | "tidy" | "vendor", ..]) => return Some(Self::Go),
            "go" => &["get", "install"],
            _ => return None,
        };
        Self::from_name(name).filter(|_| rest.first().is_some_and(|first| installs.contains(first)))
    }
}

/// A host that the settings of a package manager name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PackageRegistry {
    /// With its port unless that is 80 or 443.
    pub host: String,
    /// The file of the project that names it; `None`: a variable, settings of the user, or the program itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// What a task of a plan installs, and from where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installs {
    /// The task that installs, or whose checks do.
    pub task: String,
    pub managers: Vec<PackageManager>,
    /// The registries that an approval of the plan opens to this task.
    pub registries: Vec<PackageRegistry>,
}

impl Installs {
    /// The names of the package managers.
    pub fn managers(&self) -> String {
        self.managers.iter().map(|manager| manager.name()).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Installs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let registry = |registry: &PackageRegistry| match &registry.file {
            Some(file) => format!("{} (named by the project's `{file}`)", registry.host),
            None => registry.host.clone(),
        };
        let registries: Vec<String> = self.registries.iter().map(registry).collect();
        write!(f, "task `{}` installs packages: {}, from {}", self.task, self.managers(), registries.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_install_are_known() {
        let table = [
            ("npm install --no-audit left-pad", Some(PackageManager::Npm)),
            ("npm --silent ci", Some(PackageManager::Npm)),
            ("npx prettier .", None),
            ("uv pip list", None),
            ("uv pip install six", Some(PackageManager::Uv)),
            ("go mod verify", None),
            ("npm test", None),
            ("npm run install", None),
            ("pnpm i", Some(PackageManager::Pnpm)),
            ("yarn", Some(PackageManager::Yarn)),
            ("yarn test", None),
            ("pip3 install -r requirements.txt", Some(PackageManager::Pip)),
            ("/usr/bin/python3.11 -m pip install six", Some(PackageManager::Pip)),
            ("python3 install.py", None),
            ("pip list", None),
            ("uv sync", Some(PackageManager::Uv)),
            ("uv run pytest", None),
            ("cargo fetch --locked", Some(PackageManager::Cargo)),
            ("cargo test", None),
            ("go mod download", Some(PackageManager::Go)),
            ("go test ./...", None),
            ("make install", None),
            ("", None),
        ];
        for (line, want) in table {
            let argv: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            assert_eq!(PackageManager::installing(&argv), want, "{line}");
        }
    }
}
