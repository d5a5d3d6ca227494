//! Which variables a command gets: those on a list, and never one that looks like a secret.

/// Variables that are handed on, if they are set.
const NAMES: [&str; 52] = [
    "BUN_INSTALL",
    "CC",
    "CFLAGS",
    "CI",
    "COLORTERM",
    "CPPFLAGS",
    "CXX",
    "CXXFLAGS",
    "DENO_DIR",
    "DOTNET_ROOT",
    "FORCE_COLOR",
    "GOFLAGS",
    "GOOS",
    "GOPATH",
    "GOPROXY",
    "GOROOT",
    "GOTOOLCHAIN",
    "GRADLE_HOME",
    "HOME",
    "JAVA_HOME",
    "LANG",
    "LANGUAGE",
    "LDFLAGS",
    "LOGNAME",
    "MAVEN_HOME",
    "NODE_ENV",
    "NODE_PATH",
    "NO_COLOR",
    "NPM_CONFIG_REGISTRY",
    "NVM_DIR",
    "PATH",
    "PIP_EXTRA_INDEX_URL",
    "PIP_INDEX_URL",
    "PKG_CONFIG_PATH",
    "PNPM_HOME",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPATH",
    "RUSTFLAGS",
    "RUST_BACKTRACE",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SOURCE_DATE_EPOCH",
    "TERM",
    "TZ",
    "USER",
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "UV_INDEX_URL",
    "VIRTUAL_ENV",
    "npm_config_registry",
];
/// Beginnings of further names.
const BEGINNINGS: [&str; 2] = ["LC_", "CARGO_"];

/// Places to write to that a command cannot reach: without them it writes beneath its own folder.
const ELSEWHERE: [&str; 3] = ["CARGO_BUILD_TARGET_DIR", "CARGO_INSTALL_ROOT", "CARGO_TARGET_DIR"];

/// Whether a variable may be handed on to a command.
pub fn allowed(name: &str, value: &str) -> bool {
    let listed = NAMES.contains(&name) || BEGINNINGS.iter().any(|start| name.starts_with(start));
    listed && !ELSEWHERE.contains(&name) && !is_secret(name) && !has_login(value)
}

/// Whether a variable of this name is probably a secret.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let within = ["API_KEY", "APIKEY", "PASSWORD", "PASSWD", "SECRET", "CREDENTIAL", "PRIVATE_KEY", "ACCESS_KEY"];
    let whole = |word: &str| name == word || name.ends_with(&format!("_{word}"));
    within.iter().any(|word| name.contains(word)) || ["TOKEN", "PAT", "AUTH", "PASS"].into_iter().any(whole)
}

/// Whether a value has an address with a name, a password or a query in it.
fn has_login(value: &str) -> bool {
    if value.contains("://") && value.contains('?') {
        return true;
    }
    value.split("://").skip(1).any(|rest| rest.split('/').next().is_some_and(|host| host.contains('@')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        for name in [
            "OPENAI_API_KEY",
            "GITHUB_TOKEN",
            "TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_ACCESS_KEY_ID",
            "AWS_SESSION_TOKEN",
            "CLIENT_SECRET",
            "PGPASSWORD",
            "MYSQL_PASSWORD_FILE",
            "db_password",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GH_PAT",
            "NPM_CONFIG__AUTH",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["PATH", "HOME", "CARGO_TARGET_DIR", "TOKENIZERS_PARALLELISM", "SSH_AUTH_SOCK", "KEYMAP", "PWD"] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn only_listed_variables_are_passed_on() {
        let table = [
            ("PATH", "/bin", true),
            ("LC_ALL", "C", true),
            ("CARGO_HOME", "/c", true),
            ("CARGO_TARGET_DIR", "/t", false),
            ("CARGO_REGISTRY_TOKEN", "x", false),
            ("CARGO_HTTP_PROXY", "http://me:secret@proxy/", false),
            ("DATABASE_URL", "postgres://h/db", false),
            ("SSH_AUTH_SOCK", "/run/a", false),
            ("LD_PRELOAD", "/x.so", false),
            ("GIT_DIR", "/x", false),
            ("ANTHROPIC_API_KEY", "x", false),
            ("HTTPS_PROXY", "http://p", false),
            ("BASH_ENV", "/x", false),
        ];
        for (name, value, want) in table {
            assert_eq!(allowed(name, value), want, "{name}");
        }
    }
}
