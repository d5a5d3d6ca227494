//! Projects whose packages come from a registry under a name of its own: verdaccio, a PyPI server, a sparse registry of cargo.
//!
//! Each test runs again in a network of its own, where the name leads to a public address of this machine.
#![cfg(target_os = "linux")]
#![expect(clippy::print_stderr, reason = "a test that cannot run here says so")]

use std::ffi::OsString;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use max_team_testkit::{ModelServer, Reply, Script};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::plans::{news, plan, repository, task, voice, write};
use super::program::{Program, soon};
use super::serve::{Client, is_asked, serve};

/// Where the registry is found.
const HOST: &str = "registry.packages.example";
const ADDRESS: &str = "93.184.216.34";
const RULE: &str = "WebFetch(domain:registry.packages.example)";
/// How long a package manager may try a registry that is refused: each tries a few times by itself.
const REFUSED_MAX: Duration = Duration::from_secs(60);
/// Set in the run of a test that has a network of its own.
const WITHIN: &str = "MAX_TEAM_TEST_NETWORK";
/// Brings that network up and runs the test there.
const ENTER: &str =
    "ip link set lo up && ip address add \"$1\" dev lo && mount --bind \"$2\" /etc/hosts && shift 2 && exec \"$@\"";

/// Runs a test again in a network of its own. Returns whether this is that run.
fn is_within_network(test: &str) -> bool {
    if std::env::var_os(WITHIN).is_some() {
        return true;
    }
    let folder = TempDir::new().unwrap();
    let hosts = folder.path().join("hosts");
    std::fs::write(&hosts, format!("127.0.0.1 localhost\n{ADDRESS} {HOST}\n")).unwrap();
    let within = |words: &[OsString]| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "--net", "sh", "-c", ENTER, "sh"]).arg(ADDRESS).arg(&hosts);
        command.args(words).env(WITHIN, "1").output()
    };
    match within(&["true".into()]) {
        Ok(tried) if tried.status.success() => {}
        tried => {
            eprintln!("SKIPPED: no network can be made: {tried:?}");
            return false;
        }
    }
    let test = format!("registries::{test}");
    let own = std::env::current_exe().unwrap().into_os_string();
    let ran = within(&[own, test.into(), "--exact".into(), "--nocapture".into()]).unwrap();
    let said = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
    eprintln!("{said}");
    false
}

/// Where `scripts/test.sh` has installed the registries.
fn installed(name: &str) -> Option<PathBuf> {
    let found = std::env::var_os("MAX_TEAM_REGISTRIES").map(|folder| Path::new(&folder).join(name));
    let found = found.filter(|path| path.exists());
    if found.is_none() {
        eprintln!("SKIPPED: no `{name}` in MAX_TEAM_REGISTRIES, which scripts/test.sh sets");
    }
    found
}

/// A server that ends with the test.
struct Registry(Child);

impl Drop for Registry {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Registry {
    fn start(command: &mut Command) -> Self {
        let registry = Self(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap());
        assert!(soon(|| TcpStream::connect((ADDRESS, 80)).is_ok()), "{command:?}");
        registry
    }
}

/// Runs a line of shell to its end.
fn shell(dir: &Path, line: &str) {
    let ran = Command::new("sh").args(["-ec", line]).current_dir(dir).output().unwrap();
    assert!(ran.status.success(), "{line}: {ran:?}");
}

fn file(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// What is to be done in a project.
struct Project {
    manager: &'static str,
    files: &'static [(&'static str, &'static str)],
    install: &'static str,
    test: &'static str,
    /// The check of the task: no person is asked about its connections.
    check: &'static str,
    /// The file that is wrong, and what mends it.
    fix: (&'static str, &'static str),
    /// What else the task may change: what installing names.
    lock: &'static [&'static str],
    variables: Vec<(&'static str, String)>,
}

impl Project {
    fn lay_out(&self, server: &ModelServer) -> Program {
        let program = self.files.iter().fold(Program::team(server), |program, (name, text)| program.file(name, text));
        let program = self.variables.iter().fold(program, |program, (name, value)| program.variable(name, value));
        repository(&program);
        program
    }

    /// A lead that plans the fix, and a coder that installs, tests, mends and tests again.
    fn model(&self, installs: Value, check: &str) -> ModelServer {
        let run = |line: &str| Reply::new().tool("r", "run_shell", json!({ "command": line, "writes": true }));
        let owns: Vec<&str> = self.lock.iter().copied().chain([self.fix.0]).collect();
        let tasks = json!([{ "id": "fix", "title": "fix", "agent": "leo", "description": "Install the packages, run the tests, fix the failing one.",
            "owns": owns, "verify": [check], "installs": installs }]);
        let mend = write(self.fix.0, self.fix.1);
        let work = vec![run(self.install), run(self.test), mend, run(self.test), Reply::text("Mended.")];
        let script = Script::new()
            .when(voice(task("fix"), work))
            .when(voice(news("is over:"), vec![Reply::text("x"), Reply::text("Mended.")]))
            .when(voice(news("please"), vec![plan(tasks)]))
            .on(|_| true, Reply::text("So it is."));
        ModelServer::start(script)
    }

    /// Without a rule the host is refused, and named with the rule that allows it.
    fn is_refused_at_once(&self) {
        let call = Reply::new().tool("t", "run_shell", json!({ "command": self.install, "writes": true }));
        let model = ModelServer::start([call, Reply::text("No.")]);
        let program = self.lay_out(&model);
        let started = Instant::now();
        let ran =
            program.run(&["-p", "install it", "--agent", "leo", "--allowed-tools", &format!("Bash({})", self.install)]);
        let took = started.elapsed();
        let told = model.requests().last().unwrap().body["messages"].to_string();
        let line = format!("[no network: `{HOST}` was blocked; allow it with `{RULE}`]");
        assert!(ran.code == 0 && told.contains(&line), "{ran:?}: {told}");
        assert!(took < REFUSED_MAX, "{took:?}: {told}");
        eprintln!("`{}` was refused after {took:?}", self.install);
    }

    /// One rule, and nothing is asked.
    fn is_mended_with_one_rule(&self) {
        let model = self.model(json!([]), self.check);
        let program = self
            .lay_out(&model)
            .file(".max-team/settings.json", json!({ "permissions": { "allow": [RULE] } }).to_string());
        assert_eq!(program.run(&["permissions", "trust", "--yes"]).code, 0);
        let ran = program.run(&["-p", "mend it, please", "--approve", "never"]);
        assert_eq!(ran.out, "Mended.\n", "{ran:?}");
        self.is_mended(&program);
    }

    /// In the chat, the plan and the host are all that is asked.
    fn is_mended_after_one_answer(&self) {
        let model = self.model(json!([]), self.check);
        let program = self.lay_out(&model);
        let server = serve(&program, &[]);
        let browser = Client::browser(&server);
        let session = browser.say("mend it, please");
        let mut events = browser.events(&format!("?session={session}&from=0"), &[]);
        let planned = events.until(is_asked);
        let path = format!("/api/v1/plans/{}/decision", planned["plan"].as_str().unwrap());
        assert_eq!(browser.post(&path, &json!({ "decision": "approve" })).status, 200);
        let asked = events.until(is_asked);
        assert!(asked.to_string().contains(HOST), "{asked}");
        let path = format!("/api/v1/questions/{}/answer", asked["question"].as_str().unwrap());
        let answer = json!({ "allow": true, "always": true, "until": "repository" });
        assert_eq!(browser.post(&path, &answer).status, 200);
        let is_over = |event: &Value| event["type"] == "plan" && event["state"] == "done";
        events.until(|event| is_over(event) || (is_asked(event) && event["question"] != asked["question"]));
        assert_eq!(events.seen.iter().filter(|event| is_asked(event)).count(), 2, "{:#?}", events.seen);
        self.is_mended(&program);
    }

    /// The approval of a plan that installs covers the registry, also for the checks.
    fn is_mended_as_the_plan_says(&self) {
        let model = self.model(json!([self.manager]), self.test);
        let program = self.lay_out(&model);
        let planned = program.run(&["-p", "mend it, please"]);
        let line = format!("installs packages: {}, from ", self.manager);
        let is_shown =
            planned.out.contains(&line) && planned.out.contains(&format!("{HOST} (named by the project's `"));
        assert!(is_shown, "{planned:?}");
        assert_eq!(program.run(&["approve"]).code, 0);
        let ran = program.run(&["-c", "-p", ""]);
        assert!(!ran.err.contains("no network"), "{ran:?}");
        self.is_mended(&program);
    }

    fn is_mended(&self, program: &Program) {
        assert_eq!(program.read(self.fix.0), self.fix.1);
        let rows = program.journal();
        let ended = rows.iter().rev().find(|row| row["event"] == "plan_ended").unwrap();
        let tally = &ended["payload"]["plan_ended"]["tally"];
        assert_eq!((&tally["verified"], &tally["failed"]), (&Value::from(1), &Value::from(0)), "{ended}");
    }

    fn is_installed_as_the_user_says(&self) {
        self.is_refused_at_once();
        self.is_mended_with_one_rule();
        self.is_mended_after_one_answer();
        self.is_mended_as_the_plan_says();
    }
}

/// Programs of the system, and none that a version manager puts before them.
fn system() -> (&'static str, String) {
    ("PATH", "/usr/bin:/bin".to_owned())
}

const VERDACCIO: &str = "storage: ./storage\nuplinks: {}\nauth: {htpasswd: {file: ./htpasswd}}\n\
    packages: {'**': {access: $all, publish: $anonymous}}\nlog: {type: stdout, level: error}\n";

#[test]
fn npm_installs_from_a_registry_that_the_user_allows() {
    let Some(verdaccio) = installed("node_modules/verdaccio/bin/verdaccio") else { return };
    if !is_within_network("npm_installs_from_a_registry_that_the_user_allows") {
        return;
    }
    let store = TempDir::new().unwrap();
    let dir = store.path();
    file(dir, "config.yaml", VERDACCIO);
    let node =
        std::env::var_os("MAX_TEAM_MCP_SERVERS").map(|folder| Path::new(&folder).join("node_modules/node/bin/node"));
    let node = node.filter(|node| node.exists()).unwrap_or_else(|| "node".into());
    let listen = format!("http://{ADDRESS}:80");
    let _registry = Registry::start(
        Command::new(node).arg(verdaccio).args(["--config", "config.yaml", "--listen", &listen]).current_dir(dir),
    );
    file(dir, "tiny/package.json", r#"{"name":"tiny","version":"1.0.0"}"#);
    file(dir, "tiny/index.js", "module.exports = 1;\n");
    file(dir, "npmrc", &format!("//{HOST}/:_authToken=none\n"));
    shell(dir, &format!("npm publish --loglevel error --userconfig npmrc --registry http://{HOST}/ ./tiny"));
    let project = Project {
        manager: "npm",
        files: &[
            (".npmrc", "registry=http://registry.packages.example/\naudit=false\nfund=false\n"),
            (".gitignore", "node_modules\n"),
            (
                "package.json",
                r#"{"name":"app","version":"1.0.0","scripts":{"test":"node --test"},"dependencies":{"tiny":"1.0.0"}}"#,
            ),
            ("add.js", "module.exports = (a) => a - require('tiny');\n"),
            (
                "test/add.test.js",
                "require('node:test')('adds', () => require('node:assert').equal(require('../add.js')(1), 2));\n",
            ),
        ],
        install: "npm install",
        test: "npm test",
        check: "npm test",
        fix: ("add.js", "module.exports = (a) => a + require('tiny');\n"),
        lock: &["package-lock.json"],
        variables: vec![system()],
    };
    project.is_installed_as_the_user_says();
}

#[test]
fn pip_installs_from_a_registry_that_the_user_allows() {
    let Some(python) = installed("python") else { return };
    if !is_within_network("pip_installs_from_a_registry_that_the_user_allows") {
        return;
    }
    let store = TempDir::new().unwrap();
    let dir = store.path();
    let info = "packages/tiny-1.0.dist-info";
    file(dir, "packages/tiny.py", "ONE = 1\n");
    file(dir, &format!("{info}/METADATA"), "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n");
    file(dir, &format!("{info}/WHEEL"), "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n");
    file(dir, &format!("{info}/RECORD"), "");
    shell(&dir.join("packages"), "python3 -m zipfile -c tiny-1.0-py3-none-any.whl tiny.py tiny-1.0.dist-info");
    let mut command = Command::new("python3");
    command.args(["-m", "pypiserver", "run", "--port", "80", "--interface", ADDRESS, "--disable-fallback", "packages"]);
    let _registry = Registry::start(command.env("PYTHONPATH", python).current_dir(dir).stderr(Stdio::null()));
    let project = Project {
        manager: "pip",
        files: &[
            (".gitignore", "vendor\n__pycache__\n"),
            (
                "requirements.txt",
                "--index-url http://registry.packages.example/simple/\n--trusted-host registry.packages.example\ntiny==1.0\n",
            ),
            (
                "add.py",
                "import sys\nsys.path.insert(0, 'vendor')\nimport tiny\n\ndef add(a):\n    return a - tiny.ONE\n",
            ),
            (
                "test_add.py",
                "import unittest\nimport add\n\nclass Adds(unittest.TestCase):\n    def test_adds(self):\n        self.assertEqual(add.add(1), 2)\n",
            ),
        ],
        install: "pip install --target vendor --requirement requirements.txt",
        test: "python3 -m unittest",
        check: "python3 -m unittest",
        fix: (
            "add.py",
            "import sys\nsys.path.insert(0, 'vendor')\nimport tiny\n\ndef add(a):\n    return a + tiny.ONE\n",
        ),
        lock: &["vendor/**"],
        variables: vec![system()],
    };
    project.is_installed_as_the_user_says();
}

#[test]
fn cargo_builds_with_a_registry_that_the_user_allows() {
    if !is_within_network("cargo_builds_with_a_registry_that_the_user_allows") {
        return;
    }
    let store = TempDir::new().unwrap();
    let dir = store.path();
    file(dir, "tiny-1.0.0/Cargo.toml", "[package]\nname = \"tiny\"\nversion = \"1.0.0\"\nedition = \"2021\"\n");
    file(dir, "tiny-1.0.0/src/lib.rs", "pub const ONE: i32 = 1;\n");
    file(dir, "site/config.json", &format!("{{\"dl\":\"http://{HOST}/{{crate}}-{{version}}.crate\"}}"));
    shell(
        dir,
        "mkdir -p site/ti/ny && tar -czf site/tiny-1.0.0.crate tiny-1.0.0 && sum=$(sha256sum site/tiny-1.0.0.crate | cut -d' ' -f1) && \
         echo '{\"name\":\"tiny\",\"vers\":\"1.0.0\",\"deps\":[],\"cksum\":\"'$sum'\",\"features\":{},\"yanked\":false}' > site/ti/ny/tiny",
    );
    let mut command = Command::new("python3");
    command.args(["-m", "http.server", "--bind", ADDRESS, "--directory", "site", "80"]);
    let _registry = Registry::start(command.current_dir(dir).stderr(Stdio::null()));
    let variable = |name| std::env::var_os(name).map(|value| value.into_string().unwrap());
    let own = variable("RUSTUP_HOME").unwrap_or_else(|| format!("{}/.rustup", variable("HOME").unwrap()));
    let project = Project {
        manager: "cargo",
        files: &[
            (".cargo/config.toml", "[registries.packages]\nindex = \"sparse+http://registry.packages.example/\"\n"),
            (".gitignore", "target\n"),
            (
                "Cargo.toml",
                "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\ntiny = { version = \"1\", registry = \"packages\" }\n",
            ),
            ("src/lib.rs", "pub fn add(a: i32) -> i32 {\n    a - tiny::ONE\n}\n"),
            ("tests/adds.rs", "#[test]\nfn adds() {\n    assert_eq!(app::add(1), 2);\n}\n"),
        ],
        install: "cargo build",
        test: "cargo test",
        // What cargo downloads goes with the command, so that `cargo test` would need the registry again.
        check: "cargo metadata --no-deps",
        fix: ("src/lib.rs", "pub fn add(a: i32) -> i32 {\n    a + tiny::ONE\n}\n"),
        lock: &["Cargo.lock"],
        variables: vec![("RUSTUP_HOME", own)],
    };
    project.is_installed_as_the_user_says();
}
