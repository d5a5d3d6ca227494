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
    /// All package managers with the names of their programs.
    pub const NAMES: [(&str, PackageManager); 7] = [
        ("npm", PackageManager::Npm),
        ("pnpm", PackageManager::Pnpm),
        ("yarn", PackageManager::Yarn),
        ("pip", PackageManager::Pip),
        ("uv", PackageManager::Uv),
        ("cargo", PackageManager::Cargo),
        ("go", PackageManager::Go),
    ];

    /// The name of its program.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, manager)| *manager == self).map_or("npm", |(name, _)| name)
    }

    /// The package manager of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, manager)| *manager)
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
            "npx" => return Some(Self::Npm),
            "uvx" => return Some(Self::Uv),
            "npm" => &["install", "i", "add", "ci", "clean-install", "update", "exec", "x"],
            "pnpm" => &["install", "i", "add", "update", "up", "dlx"],
            // `yarn` alone installs.
            "yarn" if rest.is_empty() => return Some(Self::Yarn),
            "yarn" => &["install", "add", "up", "upgrade", "dlx"],
            "pip" => &["install", "download", "wheel"],
            "uv" => &["sync", "add", "lock", "tool", "pip"],
            "cargo" => &["fetch", "add", "update", "install", "vendor", "generate-lockfile"],
            "go" => &["get", "install", "mod"],
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
    /// The file of the project that names it; `None`: the user's own settings, or the program itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// What a plan installs, and from where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installs {
    /// The tasks that install, or whose checks do.
    pub tasks: Vec<String>,
    pub managers: Vec<PackageManager>,
    /// The registries that an approval of the plan opens to these tasks.
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
        let tasks: Vec<String> = self.tasks.iter().map(|task| format!("`{task}`")).collect();
        write!(f, "installs packages: {}, from {}; tasks {}", self.managers(), registries.join(", "), tasks.join(", "))
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
            ("npx prettier .", Some(PackageManager::Npm)),
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
