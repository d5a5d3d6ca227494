//! The registries that package managers install from within the sandbox, by the settings that they see there: variables, files
//! of the project, cargo's settings of the user, and what the programs use without any. The user's other settings hold
//! logins, so commands cannot read them.
//!
//! The files differ in form (ini, TOML, YAML, lists of flags), but each names a registry as an address in a line with a known
//! key, so we scan lines instead of parsing each format. An address with a variable in it is not known and opens nothing.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use max_team_core::packages::{PackageManager, PackageRegistry};
use max_team_core::policy::is_local_host;
use max_team_sandbox::allowed;
use reqwest::Url;

use super::{FILE_BYTES_MAX, ProjectFolder};
use crate::command;
use crate::files::Root;

/// Registries of one package manager.
const REGISTRIES_MAX: usize = 20;

/// Where a package manager names its registries.
struct Places {
    variables: &'static [&'static str],
    /// Files at the top of the project; `*` stands for anything.
    project: &'static [&'static str],
    /// Files below the user's home folder that commands can read.
    user: &'static [&'static str],
    /// Keys in these files; a leading `*` stands for anything.
    keys: &'static [&'static str],
    /// The keys and variables that replace the usual registries.
    replaces: &'static [&'static str],
    usual: &'static [&'static str],
}

const fn places(manager: PackageManager) -> Places {
    const NPM_USUAL: &str = "registry.npmjs.org";
    const PYPI: &[&str] = &["pypi.org", "files.pythonhosted.org"];
    match manager {
        PackageManager::Npm | PackageManager::Pnpm => Places {
            variables: &["npm_config_registry", "NPM_CONFIG_REGISTRY"],
            project: &[".npmrc"],
            user: &[],
            keys: &["registry", "*:registry"],
            replaces: &["registry", "npm_config_registry", "NPM_CONFIG_REGISTRY"],
            usual: &[NPM_USUAL],
        },
        PackageManager::Yarn => Places {
            variables: &["npm_config_registry", "NPM_CONFIG_REGISTRY"],
            project: &[".npmrc", ".yarnrc", ".yarnrc.yml"],
            user: &[],
            keys: &["registry", "*:registry", "npmRegistryServer"],
            replaces: &[],
            usual: &["registry.yarnpkg.com", NPM_USUAL],
        },
        PackageManager::Pip => Places {
            variables: &["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"],
            project: &["requirements*.txt"],
            user: &[],
            keys: &["index-url", "extra-index-url", "--index-url", "--extra-index-url", "-i"],
            replaces: &["index-url", "--index-url", "-i", "PIP_INDEX_URL"],
            usual: PYPI,
        },
        PackageManager::Uv => Places {
            variables: &["UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL"],
            project: &["pyproject.toml", "uv.toml", "requirements*.txt"],
            user: &[],
            keys: &["index-url", "extra-index-url", "url", "--index-url", "--extra-index-url", "-i"],
            replaces: &["index-url", "--index-url", "-i", "UV_DEFAULT_INDEX", "UV_INDEX_URL"],
            usual: PYPI,
        },
        PackageManager::Cargo => Places {
            variables: &[],
            project: &[".cargo/config.toml", ".cargo/config"],
            user: &[".cargo/config.toml", ".cargo/config"],
            keys: &["registry", "index"],
            replaces: &[],
            usual: &["index.crates.io", "static.crates.io"],
        },
        PackageManager::Go => Places {
            variables: &["GOPROXY"],
            project: &[],
            user: &[],
            keys: &[],
            replaces: &["GOPROXY"],
            usual: &["proxy.golang.org", "sum.golang.org"],
        },
    }
}

/// The registries that a package manager's settings name now. Blocking.
pub fn registries(manager: PackageManager, root: &Path) -> Vec<PackageRegistry> {
    let mut vars = command::variables();
    vars.retain(|(name, value)| allowed(name, value));
    registries_by(manager, root, &vars)
}

fn registries_by(manager: PackageManager, root: &Path, vars: &[(String, String)]) -> Vec<PackageRegistry> {
    let (places, mut found) = (places(manager), FoundRegistries::default());
    for (name, value) in vars.iter().filter(|(name, _)| places.variables.contains(&name.as_str())) {
        found.add(&places, name, value, None);
    }
    if let Ok(root) = Root::open(root) {
        let folder = ProjectFolder { names: super::names(root.path()), root };
        for file in files(&folder, places.project) {
            found.read(&places, &folder.text(&file).unwrap_or_default(), Some(&file));
        }
    }
    if let Some((_, home)) = vars.iter().find(|(name, _)| name == "HOME") {
        for file in places.user {
            found.read(&places, &text(&Path::new(home).join(file)), None);
        }
    }
    let usual = |host: &&str| PackageRegistry { host: (*host).to_owned(), file: None };
    found.all.extend(places.usual.iter().filter(|_| !found.replaces_usual).map(usual));
    found.all
}

/// The files of the project that are there, of those that a manager reads.
fn files(folder: &ProjectFolder, wanted: &[&str]) -> Vec<String> {
    let fits = |name: &&String, pattern: &str| match pattern.split_once('*') {
        Some((start, end)) => name.starts_with(start) && name.ends_with(end),
        None => *name == pattern,
    };
    let of = |pattern: &&str| match pattern.contains('/') {
        true => vec![(*pattern).to_owned()],
        false => folder.names.iter().filter(|name| fits(name, pattern)).cloned().collect(),
    };
    wanted.iter().flat_map(of).collect()
}

fn text(path: &Path) -> String {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
    read.map_or_else(|_| String::new(), |_| String::from_utf8_lossy(&bytes).into_owned())
}

#[derive(Default)]
struct FoundRegistries {
    all: Vec<PackageRegistry>,
    replaces_usual: bool,
}

impl FoundRegistries {
    fn read(&mut self, places: &Places, text: &str, file: Option<&str>) {
        for (key, value) in entries(text) {
            self.add(places, &key, &value, file);
        }
    }

    fn add(&mut self, places: &Places, key: &str, value: &str, file: Option<&str>) {
        let is = |known: &&str| known.strip_prefix('*').map_or(*known == key, |end| key.ends_with(end));
        if !places.keys.iter().any(is) && !places.variables.contains(&key) {
            return;
        }
        for url in addresses(value) {
            self.replaces_usual |= places.replaces.contains(&key);
            let registry = PackageRegistry { host: crate::web::host(&url), file: file.map(str::to_owned) };
            // A project must not open a port of this machine.
            let is_trap = file.is_some() && is_local_host(&registry.host);
            let is_known = self.all.iter().any(|known| known.host == registry.host);
            if !is_trap && !is_known && self.all.len() < REGISTRIES_MAX {
                self.all.push(registry);
            }
        }
    }
}

/// The keys and values of a file's lines. An indented line without a key continues the one before.
fn entries(text: &str) -> impl Iterator<Item = (String, String)> {
    let mut last = String::new();
    text.lines().filter(|line| !line.trim_start().starts_with(['#', ';'])).filter_map(move |line| {
        let trimmed = line.trim_start().trim_start_matches("- ");
        let word = trimmed.split(|letter: char| letter.is_whitespace() || letter == '=').next().unwrap_or_default();
        let is_address = word.contains("://");
        if !is_address {
            // YAML ends a key with a colon.
            last = word.trim_end_matches(':').to_owned();
        } else if !line.starts_with(char::is_whitespace) {
            last.clear();
        }
        let rest = if is_address { trimmed } else { trimmed.get(word.len()..).unwrap_or_default() };
        (!last.is_empty()).then(|| (last.clone(), rest.to_owned()))
    })
}

/// The web addresses in a value.
fn addresses(value: &str) -> impl Iterator<Item = Url> {
    let words = value.split(|letter: char| letter.is_whitespace() || "\"',[]{}|=".contains(letter));
    words.filter_map(|word| {
        let url = Url::parse(word.strip_prefix("sparse+").unwrap_or(word)).ok()?;
        let is_web = matches!(url.scheme(), "http" | "https");
        (is_web && !word.contains('$') && url.host_str().is_some_and(|host| !host.is_empty())).then_some(url)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use PackageManager::{Cargo, Go, Npm, Pip, Uv, Yarn};

    use super::*;

    fn hosts(manager: PackageManager, files: &[(&str, &str)], vars: &[(&str, &str)]) -> Vec<String> {
        let (project, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (path, text) in files {
            let (root, path) = match path.strip_prefix("~/") {
                Some(path) => (home.path(), path),
                None => (project.path(), *path),
            };
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        let own = ("HOME".to_owned(), home.path().display().to_string());
        let vars = vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let vars: Vec<_> = std::iter::once(own).chain(vars).collect();
        let found = registries_by(manager, project.path(), &vars).into_iter();
        found.map(|registry| registry.host + registry.file.map_or("", |_| " (project)")).collect()
    }

    type Pairs<'a> = &'a [(&'a str, &'a str)];

    fn check(table: &[(PackageManager, Pairs, Pairs, &[&str])]) {
        for (manager, files, vars, want) in table {
            assert_eq!(hosts(*manager, files, vars), *want, "{files:?} {vars:?}");
        }
    }

    #[test]
    fn npm_installs_from_what_its_settings_name() {
        check(&[
            (Npm, &[], &[], &["registry.npmjs.org"]),
            (
                Npm,
                &[(
                    ".npmrc",
                    "# registry=https://no.example\nregistry = https://npm.example:4873/\n@a:registry=https://a.example/x/\n//a.example/:_authToken=s\n",
                )],
                &[],
                &["npm.example:4873 (project)", "a.example (project)"],
            ),
            (Npm, &[(".npmrc", "registry=http://localhost:5432/\nregistry=https://${HOST}/")], &[], &[]),
            (
                Npm,
                &[("~/.npmrc", "registry=https://hidden.example/")],
                &[("npm_config_registry", "http://localhost:4873")],
                &["localhost:4873"],
            ),
        ]);
    }

    #[test]
    fn each_manager_has_settings_of_its_own() {
        check(&[
            (Pip, &[], &[], &["pypi.org", "files.pythonhosted.org"]),
            (
                Pip,
                &[(
                    "requirements-dev.txt",
                    "--extra-index-url https://more.example/simple\nsix==1.0 # see https://no.example\n",
                )],
                &[],
                &["more.example (project)", "pypi.org", "files.pythonhosted.org"],
            ),
            (Pip, &[], &[("PIP_INDEX_URL", "https://env.example/simple")], &["env.example"]),
            (
                Uv,
                &[("pyproject.toml", "[[tool.uv.index]]\nname = \"a\"\nurl = \"https://uv.example/simple\"\n")],
                &[],
                &["uv.example (project)", "pypi.org", "files.pythonhosted.org"],
            ),
            (
                Cargo,
                &[(".cargo/config.toml", "[source.mirror]\nregistry = \"sparse+https://crates.example/index/\"\n")],
                &[],
                &["crates.example (project)", "index.crates.io", "static.crates.io"],
            ),
            (
                Cargo,
                &[("~/.cargo/config.toml", "[source.mirror]\nregistry = \"https://own.example/\"\n")],
                &[],
                &["own.example", "index.crates.io", "static.crates.io"],
            ),
            (Go, &[], &[("GOPROXY", "https://go.example|direct")], &["go.example"]),
            (
                Yarn,
                &[(".yarnrc.yml", "npmScopes:\n  a:\n    npmRegistryServer: \"https://yarn.example\"\n")],
                &[],
                &["yarn.example (project)", "registry.yarnpkg.com", "registry.npmjs.org"],
            ),
        ]);
    }
}
