//! Profiles that stay signed in, and the window in which a user signs in.

use std::process::{Command, Stdio};

use super::*;

/// A site that knows its visitors by a script, so that no request needs to be read.
const SITE: &str = "<title>Shop</title><p id=who></p><script>\
                    who.textContent = localStorage.name ? 'Signed in as ' + localStorage.name : 'Nobody';</script>";
/// The page on which the user signs in: here it does so by itself.
const FORM: &str = "<title>Form</title><script>localStorage.name = 'Ann'; fetch('/done')</script>";

fn with_profile(server: &Server, home: &std::path::Path) -> Option<Browsing> {
    let mut browsing = Browsing::at(server)?;
    browsing.project.cx.services = Arc::new(Services {
        browser_profiles: vec!["shop".to_owned()],
        profiles_dir: Some(home.join("browser")),
        private_hosts: vec!["127.0.0.1".to_owned()],
        ..Services::default()
    });
    Some(browsing)
}

#[test]
fn a_profile_keeps_a_sign_in_and_other_pages_do_not_see_it() {
    let server = html(&[("/", SITE), ("/form", FORM), ("/done", "")]);
    let home = tempfile::TempDir::new().unwrap();
    let open = |path: &str, profile: Option<&str>| {
        let browsing = with_profile(&server, home.path())?;
        let mut input = json!({ "action": "open", "url": format!("{}{path}", browsing.base) });
        if let Some(profile) = profile {
            input["profile"] = profile.into();
        }
        let seen = browsing.act(input);
        // Chromium writes the profile when it ends.
        let processes = safety::descendants(std::process::id(), "--remote-debugging-pipe");
        drop(browsing);
        while processes.iter().any(|pid| safety::is_alive(*pid)) {
            std::thread::park_timeout(Duration::from_millis(10));
        }
        Some(seen)
    };
    let Some(_) = open("/form", Some("shop")) else { return };
    let again = open("/", Some("shop")).unwrap();
    assert!(again.contains("Signed in as Ann"), "{again}");
    let other = open("/", None).unwrap();
    assert!(other.contains("Nobody"), "{other}");
    let browsing = with_profile(&server, home.path()).unwrap();
    let refused = browsing.refused(&json!({ "action": "open", "url": browsing.base, "profile": "bank" }));
    assert!(refused.contains("`tools.browser_profiles`"), "{refused}");
}

/// The variable that tells a test process that it has a screen.
const SCREEN: &str = "MAX_TEAM_TEST_SCREEN";

#[test]
fn the_user_signs_in_in_a_window() {
    let server = html(&[("/", SITE), ("/form", FORM), ("/done", "")]);
    let home = tempfile::TempDir::new().unwrap();
    let Some(browsing) = with_profile(&server, home.path()) else { return };
    let form = json!({ "action": "sign_in", "url": format!("{}/form", browsing.base), "profile": "shop" });
    if std::env::var_os(SCREEN).is_none() {
        if std::env::var_os("DISPLAY").is_none() && std::env::var_os("WAYLAND_DISPLAY").is_none() {
            assert!(browsing.refused(&form).contains("no screen here"));
        }
        run_with_a_screen();
        return;
    }
    let nameless = browsing.refused(&json!({ "action": "sign_in", "url": browsing.base }));
    assert!(nameless.contains("needs `profile`"), "{nameless}");
    let question = match browsing.output(&form) {
        Err(ToolError::Asks(question)) => *question,
        other => panic!("{other:?}"),
    };
    assert!(question.preview.contains("Please sign in to 127.0.0.1:"), "{}", question.preview);
    let until = Instant::now() + Duration::from_secs(20);
    while !server.asked().iter().any(|path| path == "/done") {
        assert!(Instant::now() < until, "the window shows the form: {:?}", server.asked());
        browsing.runtime.block_on(async { tokio::time::sleep(Duration::from_millis(20)).await });
    }
    let mut other = with_profile(&server, home.path()).unwrap();
    other.project.cx.browsers = Arc::clone(&browsing.project.cx.browsers);
    let busy = other.refused(&json!({ "action": "open", "url": other.base, "profile": "shop" }));
    assert!(busy.contains("another browser uses this profile"), "{busy}");
    let declined = browsing.answer(&form, question.clone().with_answer(None)).unwrap_err();
    assert!(declined.to_string().contains("did not sign in"), "{declined}");
    let there = json!({ "action": "sign_in", "url": format!("{}/", browsing.base), "profile": "shop" });
    let seen = crate::project::text(browsing.answer(&there, question.with_answer(Some(""))).unwrap());
    assert!(seen.contains("Signed in as Ann"), "{seen}");
}

/// Runs the test above in a process with a virtual screen, if one can be had.
fn run_with_a_screen() {
    let screen = Command::new("Xvfb").args(["-displayfd", "1", "-nolisten", "tcp"]).stdout(Stdio::piped()).spawn();
    let Ok(mut screen) = screen else { return };
    let mut number = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(screen.stdout.take().unwrap()), &mut number).unwrap();
    let done = Command::new(std::env::current_exe().unwrap())
        .args(["browser::sign_in::the_user_signs_in_in_a_window", "--exact", "--nocapture"])
        .env(SCREEN, "1")
        .env("DISPLAY", format!(":{}", number.trim()))
        .output()
        .unwrap();
    screen.kill().unwrap();
    screen.wait().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
