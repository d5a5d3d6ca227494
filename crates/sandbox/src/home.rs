//! What a command needs of the home folder, and what no command may see of it.
//!
//! Languages keep their tools in the home folder. Their folders are named here one by one, so that the files with
//! logins beside them stay out.

use std::path::{Path, PathBuf};

/// Folders and files of languages and their tools, below the home folder.
const TOOLS: [&str; 33] = [
    ".asdf",
    ".bun/bin",
    ".cargo/bin",
    ".cargo/config",
    ".cargo/config.toml",
    ".cargo/git",
    ".cargo/registry",
    ".deno/bin",
    ".dotnet",
    ".fnm",
    ".ghcup",
    ".gradle/wrapper",
    ".jenv",
    ".juliaup",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/uv",
    ".m2/repository",
    ".nvm",
    ".opam",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".rvm",
    ".sdkman",
    ".volta",
    "go",
    "sdk",
];

/// Variables that say where such a folder is instead.
const ROOTS: [&str; 14] = [
    "BUN_INSTALL",
    "DENO_DIR",
    "DOTNET_ROOT",
    "GOPATH",
    "GOROOT",
    "GRADLE_HOME",
    "JAVA_HOME",
    "MAVEN_HOME",
    "NVM_DIR",
    "PNPM_HOME",
    "PYENV_ROOT",
    "RUSTUP_HOME",
    "VIRTUAL_ENV",
    "VOLTA_HOME",
];

/// Where people keep keys and logins, below the home folder.
const SECRETS: [&str; 28] = [
    ".aws",
    ".azure",
    ".bash_history",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".claude",
    ".claude.json",
    ".codex",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".docker",
    ".git-credentials",
    ".gnupg",
    ".gradle/gradle.properties",
    ".kube",
    ".local/share/keyrings",
    ".m2/settings.xml",
    ".max-team",
    ".mozilla",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".ssh",
    ".terraform.d",
    ".zsh_history",
];

/// The folders of languages and their tools that exist: real paths that a command may read. `vars` are the variables
/// that the command gets.
pub fn tools(home: &Path, vars: &[(String, String)]) -> Vec<PathBuf> {
    let value = |name: &str| vars.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let mut found: Vec<PathBuf> = TOOLS.iter().map(|name| home.join(name)).collect();
    found.extend(ROOTS.into_iter().filter_map(value).map(PathBuf::from));
    if let Some(cargo) = value("CARGO_HOME") {
        let parts = TOOLS.iter().filter_map(|name| name.strip_prefix(".cargo/"));
        found.extend(parts.map(|part| Path::new(cargo).join(part)));
    }
    found.extend(value("PATH").into_iter().flat_map(std::env::split_paths));
    let real = |path: PathBuf| path.is_absolute().then(|| path.canonicalize().ok()).flatten();
    let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    // A variable must not open the home folder, nor what it lies in.
    let mut found: Vec<PathBuf> = found.into_iter().filter_map(real).filter(|path| !home.starts_with(path)).collect();
    let kept_out = secrets(&home);
    found.retain(|path| !kept_out.iter().any(|secret| path.starts_with(secret) || secret.starts_with(path)));
    found.sort();
    found.dedup();
    found
}

/// The files and folders with keys and logins that exist: no command may see them, wherever it works.
pub fn secrets(home: &Path) -> Vec<PathBuf> {
    SECRETS.iter().map(|name| home.join(name)).filter_map(|path| path.canonicalize().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_found_and_keys_are_not_among_them() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        for folder in [".cargo/bin", ".cargo/registry", ".ssh", ".pyenv/shims", "work/node/bin"] {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        std::fs::write(home.join(".cargo/credentials.toml"), "token").unwrap();
        let path = format!("{}:{}:.", home.join("work/node/bin").display(), home.display());
        let vars = [("PATH", path.as_str()), ("GOPATH", "/"), ("CARGO_HOME", "relative"), ("PYENV_ROOT", "/nowhere")];
        let vars = vars.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let want = [".cargo/bin", ".cargo/registry", ".pyenv", "work/node/bin"].map(|name| home.join(name));
        assert_eq!(tools(&home, &vars), want);
        assert_eq!(secrets(&home), [home.join(".cargo/credentials.toml"), home.join(".ssh")]);
        let sly = [("GOPATH".to_owned(), home.join(".ssh").display().to_string())];
        assert!(!tools(&home, &sly).contains(&home.join(".ssh")));
    }
}
