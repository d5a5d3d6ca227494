//! The whole of loading, on real files in a scratch folder.

mod defaults;
mod faults;
mod sources;
mod strangers;

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

/// A user's folder and a project's folder, with nothing in them.
struct Place {
    folder: TempDir,
    variables: Vec<(String, String)>,
}

impl Place {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let user = folder.path().join("user").display().to_string();
        fs::create_dir_all(folder.path().join("project")).unwrap();
        Self { folder, variables: vec![("HOME".to_owned(), user)] }
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    fn user(self, text: &str) -> Self {
        self.file("user/.max-team/config.yaml", text)
    }

    fn project(self, text: &str) -> Self {
        self.file("project/.max-team/config.yaml", text)
    }

    fn file(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn cwd(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn load(&self) -> Result<Config, ConfigError> {
        self.load_with(None, &[])
    }

    fn load_with(&self, explicit: Option<&str>, flags: &[(&str, &str, &str)]) -> Result<Config, ConfigError> {
        self.load_in(&self.cwd(), explicit, flags)
    }

    fn load_in(&self, cwd: &Path, explicit: Option<&str>, flags: &[(&str, &str, &str)]) -> Result<Config, ConfigError> {
        let env: Env = self.variables.iter().cloned().collect();
        let flag = |(key, value, name): &(&str, &str, &str)| Override {
            key: (*key).to_owned(),
            value: (*value).to_owned(),
            name: (*name).to_owned(),
        };
        let overrides = flags.iter().map(flag).collect();
        load(Sources { env: &env, cwd, explicit: explicit.map(Path::new), overrides })
    }

    /// The problems of a load that must fail, without the advice.
    fn problems(&self) -> Vec<String> {
        let error = self.load().unwrap_err();
        error.problems.iter().map(|problem| self.shorten(&problem.to_string())).collect()
    }

    fn warnings(&self) -> Vec<String> {
        self.load().unwrap().warnings.iter().map(|warning| self.shorten(warning)).collect()
    }

    fn shorten(&self, text: &str) -> String {
        text.replace(&self.folder.path().display().to_string(), "")
    }
}
