//! The network of commands: what the policy opens, what a person is asked, and what everything else comes to.
#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use max_team_core::agent::Constraints;
use max_team_core::policy::rule::{Anchors, List, Origin, RuleScope};
use max_team_core::policy::{Mode, Permissions, Rule, Rules, judge};
use max_team_tools::command::{CommandOutput, CommandSandbox, engine};
use max_team_tools::{HostAnswer, HostQuestion, HostRules, PolicyCheck};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

mod attacks;

/// Whether commands have networks of their own here.
fn has_networks() -> bool {
    engine().is_ok_and(|engine| engine.has_namespaces())
}

fn policy(allowed: &[String]) -> PolicyCheck {
    let origin = Origin { scope: RuleScope::User, file: "settings.json".into(), line: 1 };
    let anchors = Anchors { root: "/p", base: "/p", home: "/" };
    let rules = allowed.iter().map(|text| Rule::new(List::Allow, text, origin.clone(), &anchors)).collect();
    let permissions = Permissions { rules, ..Permissions::default() };
    PolicyCheck::new(move |tool, action| {
        let none = Constraints::default();
        judge(&Rules { permissions: &permissions, ..Rules::new(Mode::Default, &none) }, tool, action)
    })
}

/// A server on this machine that answers every request with its path, or leads to the address behind `/to/`; returns its port.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming() {
            thread::spawn(move || {
                let (mut client, mut asked) = (client.unwrap(), [0; 4_096]);
                let read = client.read(&mut asked).unwrap_or(0);
                let head = String::from_utf8_lossy(asked.get(..read).unwrap_or_default()).into_owned();
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                let body = format!("served {path}");
                let to = path.strip_prefix("/to/").map(|to| format!("302 Found\r\nLocation: http://{to}"));
                let status = to.unwrap_or_else(|| "200 OK".to_owned());
                let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
                // A client may be gone.
                let _ = client.write_all((head + &body).as_bytes());
            });
        }
    });
    port
}

/// Every name leads to this machine.
fn here(_: &str) -> std::io::Result<Vec<IpAddr>> {
    Ok(vec!["127.0.0.1".parse().unwrap()])
}

fn python(dir: &Path, hosts: HostRules, script: &str) -> CommandOutput {
    let isolation = CommandSandbox { hosts, ..CommandSandbox::around(dir) };
    let argv = ["python3", "-c", script].map(str::to_owned);
    let limit = Duration::from_secs(60);
    max_team_tools::command::run(&argv, dir, limit, Some(&isolation), &CancellationToken::new()).unwrap()
}

const GET: &str = "import urllib.request as r, urllib.error as e, sys, threading\n\
    def get(url):\n    try: return r.urlopen(url, timeout=50).read().decode()\n    except e.HTTPError as x: return f'{x.code} ' + x.read().decode().strip()\n";

#[test]
fn a_host_that_no_rule_names_is_refused_at_once_and_named() {
    if !has_networks() {
        return;
    }
    let dir = TempDir::new().unwrap();
    let looked_up = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&looked_up);
    let hosts = HostRules::new(policy(&["WebFetch".to_owned()]), &[]).finding(move |host| {
        count.fetch_add(1, Ordering::Relaxed);
        here(host)
    });
    let over = python(dir.path(), hosts, &format!("{GET}print(get('http://secret.evil.example/'))"));
    assert!(over.output.starts_with("403 `secret.evil.example` is not among the hosts"), "{over:?}");
    let line =
        "[no network: `secret.evil.example` was blocked; allow it with `WebFetch(domain:secret.evil.example)`]\n";
    assert!(over.output.ends_with(line) && over.ms < 10_000, "{over:?}");
    assert_eq!(looked_up.load(Ordering::Relaxed), 0, "a look-up can carry data away");
}

#[test]
fn a_program_that_does_not_use_the_proxy_fails_at_once_and_is_named() {
    if !has_networks() {
        return;
    }
    let dir = TempDir::new().unwrap();
    let hosts = || HostRules::new(policy(&[]), &[]);
    let over = python(dir.path(), hosts(), "import socket as s; s.create_connection(('192.0.2.1', 443), 30)");
    let line = "[no network: a connection that did not use the proxy (HTTPS_PROXY) was blocked]\n";
    assert!(over.output.contains("unreachable") && over.output.ends_with(line) && over.ms < 10_000, "{over:?}");
    let over = python(dir.path(), hosts(), "import socket as s; s.create_connection(('db.example', 5432), 30)");
    let line = "which is the only way out: `db.example`]\n";
    let is_named = engine() != Ok(max_team_tools::command::Engine::Namespaces) || over.output.ends_with(line);
    assert!(is_named && over.output.contains("[no network: ") && over.ms < 10_000, "{over:?}");
    let over = python(dir.path(), hosts(), "print('offline')");
    assert_eq!(over.output, "offline\n");
}

/// Answers questions until none can come; returns what was asked.
fn person(
    mut questions: mpsc::Receiver<HostQuestion>,
    say: HostAnswer,
) -> thread::JoinHandle<Vec<(String, Vec<String>)>> {
    thread::spawn(move || {
        let mut asked = Vec::new();
        while let Some(HostQuestion { action, answer }) = questions.blocking_recv() {
            let parameters = action.parameters.into_iter().map(|(_, value)| value).collect();
            asked.push((action.target, parameters));
            answer.send_replace(Some(say));
        }
        asked
    })
}

#[test]
fn connections_wait_for_one_answer_and_others_go_on() {
    if !has_networks() {
        return;
    }
    let (dir, port) = (TempDir::new().unwrap(), server());
    let known = [format!("WebFetch(domain:known.test:{port})"), format!("WebFetch(domain:127.0.0.1:{port})")];
    let end = |host: &str, say| match say {
        HostAnswer::Allowed => format!("[hosts that the user allowed: `{host}`]\n"),
        HostAnswer::Refused => format!("[no network: the user refused `{host}`]\n"),
        HostAnswer::Unasked => {
            format!("[no network: `{host}` was blocked; allow it with `WebFetch(domain:{host})`]\n")
        }
    };
    for (say, want) in [
        (HostAnswer::Allowed, "served /1|served /2|served /k"),
        (HostAnswer::Refused, "403|403|served /k"),
        (HostAnswer::Unasked, "403|403|served /k"),
    ] {
        let (sender, questions) = mpsc::channel(4);
        let asked = person(questions, say);
        let hosts = HostRules::new(policy(&known), &[]).finding(here).asking("1.0", sender);
        let script = format!(
            "{GET}urls = ['http://a.test:{port}/1', 'http://a.test:{port}/2', 'http://known.test:{port}/k']\n\
             out = [None] * 3\n\
             def one(i): out[i] = get(urls[i])\n\
             all = [threading.Thread(target=one, args=(i,)) for i in range(3)]\n\
             [t.start() for t in all]; [t.join() for t in all]\n\
             print('|'.join(o[:3] if o[:3] == '403' else o for o in out))"
        );
        let over = python(dir.path(), hosts, &script);
        assert!(over.output.starts_with(want), "{over:?}");
        let host = format!("a.test:{port}");
        assert!(over.output.ends_with(&end(&host, say)), "{over:?}");
        // The address has a rule of its own already.
        assert_eq!(asked.join().unwrap(), [(host, vec!["1.0".to_owned()])]);
    }
}

/// An answer that comes after the connection was refused holds for the next connection of the command.
#[test]
fn a_late_yes_opens_the_host_for_the_rest_of_the_command() {
    if !has_networks() {
        return;
    }
    let (dir, port) = (TempDir::new().unwrap(), server());
    let pipes = ["refused", "answered"].map(|name| dir.path().join(name));
    for pipe in &pipes {
        assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
    }
    let (sender, mut questions) = mpsc::channel::<HostQuestion>(4);
    let [refused, answered] = pipes;
    let person = thread::spawn(move || {
        let question = questions.blocking_recv().unwrap();
        std::fs::read(refused).unwrap();
        question.answer.send_replace(Some(HostAnswer::Allowed));
        std::fs::write(answered, "").unwrap();
        assert!(questions.blocking_recv().is_none(), "it is asked once");
    });
    let known = [format!("WebFetch(domain:127.0.0.1:{port})")];
    let hosts = HostRules::new(policy(&known), &[]).finding(here).waiting(Duration::ZERO).asking("1.0", sender);
    let script = format!(
        "{GET}print(get('http://a.test:{port}/1')); open('refused', 'w').close(); open('answered').read(); \
         print(get('http://a.test:{port}/2'))"
    );
    let over = python(dir.path(), hosts, &script);
    person.join().unwrap();
    assert!(over.output.starts_with("403 ") && over.output.contains("\nserved /2\n"), "{over:?}");
    assert!(over.output.ends_with(&format!("\n[hosts that the user allowed: `a.test:{port}`]\n")), "{over:?}");
}

/// A program that gives up before the answer comes is told of the host, too.
#[test]
fn a_host_is_named_if_the_program_does_not_wait() {
    if !has_networks() {
        return;
    }
    let (dir, port) = (TempDir::new().unwrap(), server());
    let (sender, _questions) = mpsc::channel::<HostQuestion>(4);
    let hosts = HostRules::new(policy(&[]), &[]).finding(here).asking("1.0", sender);
    let script = format!("{GET}try: r.urlopen('http://a.test:{port}/', timeout=1)\nexcept OSError: print('gave up')");
    let over = python(dir.path(), hosts, &script);
    let host = format!("a.test:{port}");
    let want = format!("gave up\n[no network: `{host}` was blocked; allow it with `WebFetch(domain:{host})`]\n");
    assert_eq!(over.output, want);
}

#[test]
fn a_name_that_leads_to_a_private_address_is_asked_about_with_the_address() {
    if !has_networks() {
        return;
    }
    let (dir, port) = (TempDir::new().unwrap(), server());
    let (sender, questions) = mpsc::channel(4);
    let asked = person(questions, HostAnswer::Allowed);
    let rules = [format!("WebFetch(domain:mirror.test:{port})")];
    let hosts = HostRules::new(policy(&rules), &[]).finding(here).asking("1.0", sender);
    let over = python(dir.path(), hosts, &format!("{GET}print(get('http://mirror.test:{port}/x'))"));
    assert!(over.output.starts_with("served /x\n"), "{over:?}");
    assert_eq!(
        asked.join().unwrap(),
        [(format!("mirror.test:{port}"), vec!["1.0".into(), format!("127.0.0.1:{port}")])]
    );
}

#[test]
fn some_addresses_are_never_reached() {
    if !has_networks() {
        return;
    }
    let dir = TempDir::new().unwrap();
    let rules: Vec<String> = ["meta.test", "mixed.test", "169.254.169.254", "10.0.0.1", "evil.test"]
        .map(|host| format!("WebFetch(domain:{host})"))
        .to_vec();
    let hosts = HostRules::new(policy(&rules), &[]).finding(|host| {
        let found: &[&str] = if host == "meta.test" { &["169.254.169.254"] } else { &["93.184.216.34", "10.0.0.1"] };
        Ok(found.iter().map(|address| address.parse().unwrap()).collect())
    });
    let script = format!(
        "{GET}[print(get(url)) for url in ['http://meta.test/', 'http://mixed.test/', 'http://169.254.169.254/', 'http://u:p@evil.test/', 'http://evil.test:22/']]"
    );
    let over = python(dir.path(), hosts, &script);
    let lines: Vec<&str> = over.output.lines().collect();
    assert!(lines[0].starts_with("403 `meta.test` leads to 169.254.169.254"), "{over:?}");
    assert!(lines[1].starts_with("403 `mixed.test` leads to 10.0.0.1"), "{over:?}");
    assert!(lines[2].starts_with("403 `169.254.169.254` leads to"), "{over:?}");
    assert!(lines[3].starts_with("403") || lines[3].starts_with("400"), "{over:?}");
    assert!(lines[4].starts_with("403 `evil.test:22` is not among"), "a port has a rule of its own: {over:?}");
}

#[test]
fn a_hundred_connections_at_once_are_served() {
    if !has_networks() {
        return;
    }
    let (dir, port) = (TempDir::new().unwrap(), server());
    let rules = [format!("WebFetch(domain:many.test:{port})"), format!("WebFetch(domain:127.0.0.1:{port})")];
    let hosts = HostRules::new(policy(&rules), &[]).finding(here);
    let script = format!(
        "{GET}out = []\n\
         def one(i): out.append(get(f'http://many.test:{port}/{{i}}') == f'served /{{i}}')\n\
         all = [threading.Thread(target=one, args=(i,)) for i in range(100)]\n\
         [t.start() for t in all]; [t.join() for t in all]; print(sum(out))"
    );
    let started = Instant::now();
    let over = python(dir.path(), hosts, &script);
    assert_eq!(over.output, "100\n", "{:?}", started.elapsed());
}

/// A registry of npm and an index of pip with one package each, under a name of their own; returns their port.
fn registry(dir: &Path) -> u16 {
    let make = "import io, tarfile, zipfile\n\
        t = tarfile.open('tiny.tgz', 'w:gz'); b = b'{\"name\":\"tiny\",\"version\":\"1.0.0\"}'\n\
        i = tarfile.TarInfo('package/package.json'); i.size = len(b); t.addfile(i, io.BytesIO(b)); t.close()\n\
        z = zipfile.ZipFile('tiny-1.0-py3-none-any.whl', 'w'); z.writestr('tiny.py', 'x = 1\\n')\n\
        d = 'tiny-1.0.dist-info/'; z.writestr(d + 'METADATA', 'Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n')\n\
        z.writestr(d + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
        z.writestr(d + 'RECORD', ''); z.close()";
    let made = std::process::Command::new("python3").args(["-c", make]).current_dir(dir).status().unwrap();
    assert!(made.success());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, dir) = (listener.local_addr().unwrap().port(), dir.to_owned());
    thread::spawn(move || {
        for client in listener.incoming() {
            let dir = dir.clone();
            thread::spawn(move || {
                let (mut client, mut asked) = (client.unwrap(), [0; 8_192]);
                let read = client.read(&mut asked).unwrap_or(0);
                let head = String::from_utf8_lossy(asked.get(..read).unwrap_or_default()).into_owned();
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                let tarball = format!("http://registry.test:{port}/tiny.tgz");
                let (kind, body) = match path.as_str() {
                    "/tiny" => (
                        "application/json",
                        format!(
                            "{{\"name\":\"tiny\",\"dist-tags\":{{\"latest\":\"1.0.0\"}},\"versions\":{{\"1.0.0\":{{\"name\":\"tiny\",\
                             \"version\":\"1.0.0\",\"dist\":{{\"tarball\":\"{tarball}\"}}}}}}}}"
                        )
                        .into_bytes(),
                    ),
                    "/simple/tiny/" => {
                        ("text/html", b"<a href=\"/tiny-1.0-py3-none-any.whl\">tiny-1.0-py3-none-any.whl</a>".to_vec())
                    }
                    file => {
                        ("application/octet-stream", std::fs::read(dir.join(file.trim_start_matches('/'))).unwrap_or_default())
                    }
                };
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                    body.len()
                );
                let _ = client.write_all(head.as_bytes()).and_then(|()| client.write_all(&body));
            });
        }
    });
    port
}

/// The package managers themselves: a rule for the registry is all that they need, and without one they end soon.
#[test]
fn npm_and_pip_install_what_rules_allow() {
    let has = |program: &str| std::process::Command::new(program).arg("--version").output().is_ok();
    if !has_networks() || !has("npm") || !has("pip") {
        return;
    }
    let (dir, store) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let port = registry(store.path());
    let site = format!("http://registry.test:{port}");
    let npm = format!("npm install --no-audit --no-fund --registry {site}/ tiny 2>&1");
    let pip = format!(
        "pip install --isolated --no-cache-dir --trusted-host registry.test --index-url {site}/simple/ --target out tiny 2>&1"
    );
    let rules = [format!("WebFetch(domain:registry.test:{port})"), format!("WebFetch(domain:127.0.0.1:{port})")];
    let run = |line: &str, rules: &[String]| {
        let hosts = HostRules::new(policy(rules), &[]).finding(here);
        let isolation = CommandSandbox { hosts, ..CommandSandbox::around(dir.path()) };
        let argv = ["sh", "-c", line].map(str::to_owned);
        let (limit, cancel) = (Duration::from_secs(120), CancellationToken::new());
        max_team_tools::command::run(&argv, dir.path(), limit, Some(&isolation), &cancel).unwrap()
    };
    for (line, made) in [(&npm, "node_modules/tiny/package.json"), (&pip, "out/tiny.py")] {
        let over = run(line, &[]);
        let line_end = format!(
            "[no network: `registry.test:{port}` was blocked; allow it with `WebFetch(domain:registry.test:{port})`]\n"
        );
        assert!(!over.ok() && over.output.ends_with(&line_end), "{over:?}");
        assert!(!dir.path().join(made).exists() && over.ms < 60_000, "{over:?}");
        let over = run(line, &rules);
        // A wrapper around pip may fail after it has installed.
        assert!(dir.path().join(made).exists() && !over.output.contains("[no network"), "{over:?}");
    }
}
