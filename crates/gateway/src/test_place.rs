//! Where the unit tests run: a folder of their own, with a model server instead of a provider.

use std::path::Path;

use max_team_testkit::ModelServer;
use max_team_workspace::setup::AppEnv;

pub(crate) fn place(folder: &Path, model: &ModelServer) -> AppEnv {
    let variables = [("ANTHROPIC_API_KEY", "sk-test".to_owned()), ("ANTHROPIC_BASE_URL", model.url())];
    let env = variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let (cwd, home) = (folder.join("project"), folder.join("home"));
    std::fs::create_dir_all(&cwd).unwrap();
    AppEnv { env, cwd, home, wished: None, notice: |_| {} }
}
