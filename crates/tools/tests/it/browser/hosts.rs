//! Which hosts the parts of a page reach: rules that deny, private hosts, and the agent that is told.

use std::net::SocketAddr;

use max_team_core::policy::rule::{Anchors, List, Origin, RuleScope};
use max_team_core::policy::{Permissions, Rule};

use super::*;

/// Names by their first word: `public…` and `tracker…` are on the internet, `wiki…` is in a private network. All are served here.
pub(super) fn browsers() -> Browsers {
    let find = |host: &str| {
        let address = if host.starts_with("wiki") { "10.0.0.7" } else { "93.184.216.34" };
        Ok(vec![address.parse::<IpAddr>().unwrap()])
    };
    Browsers::with_lookup(find).reaching(|address| SocketAddr::from(([127, 0, 0, 1], address.port())))
}

fn at(server: &Server) -> Option<Browsing> {
    let mut browsing = Browsing::with(server, browsers())?;
    let private_hosts = vec!["wiki.example".to_owned()];
    browsing.project.cx.services = Arc::new(Services { private_hosts, ..Services::default() });
    Some(browsing)
}

pub(super) fn open(browsing: &Browsing, host: &str, path: &str) -> String {
    let port = browsing.base.rsplit(':').next().unwrap();
    browsing.act(json!({ "action": "open", "url": format!("http://{host}:{port}{path}") }))
}

/// A page that asks another host in every way.
fn asks(host: &str) -> String {
    format!(
        "<title>Asks</title><img src='//{host}/img'><iframe src='//{host}/frame'></iframe><script src='//{host}/script'></script>\
         <p id=out></p><script>const show = words => {{ out.textContent += words + ' ' }}; \
         const worker = new Worker(URL.createObjectURL(new Blob([`fetch('http://{host}/worker')\
         .then(() => postMessage('worker reached'), () => postMessage('worker refused'))`]))); worker.onmessage = m => show(m.data); \
         new WebSocket('ws://{host}/socket').onerror = () => show('socket refused'); \
         fetch('http://{host}/fetch').then(() => show('fetch reached'), () => show('fetch refused'));</script>"
    )
}

#[test]
fn a_rule_that_denies_a_host_holds_in_all_parts_of_a_page() {
    let server = Server::new(|path, stream| {
        let port = stream.local_addr().unwrap().port();
        let body = match path {
            "/" => {
                let fine = format!("<iframe src='//public-too.example:{port}/fine'></iframe>");
                fine + &asks(&format!("tracker.example:{port}"))
            }
            "/fine" => "<p>fine words</p>".to_owned(),
            _ => "<p>tracked</p>".to_owned(),
        };
        reply(stream, "200 OK", "Content-Type: text/html\r\nAccess-Control-Allow-Origin: *", body);
    });
    let Some(mut browsing) = at(&server) else { return };
    let origin = Origin { scope: RuleScope::User, file: "settings.json".to_owned(), line: 3 };
    let anchors = Anchors { root: "/p", base: "/p", home: "/" };
    let rules = vec![Rule::new(List::Deny, "WebFetch(domain:tracker.example)", origin, &anchors)];
    let permissions = Permissions { rules, ..Permissions::default() };
    // A mode that never asks denies what no rule names, which is no reason to break a page.
    browsing.project.cx.policy = PolicyCheck::new(move |tool, action| {
        let constraints = Constraints::default();
        judge(&Rules { permissions: &permissions, ..Rules::new(Mode::DontAsk, &constraints) }, tool, action)
    });
    open(&browsing, "public.example", "/");
    let page = browsing.act(json!({ "action": "wait", "text": "worker refused", "ms": 20_000 }));
    let page = page + &browsing.act(json!({ "action": "wait", "text": "fetch refused", "ms": 20_000 }));
    assert!(page.contains("fine words") && !page.contains("reached") && !page.contains("tracked"), "{page}");
    let mut asked = server.asked();
    asked.retain(|path| path != "/favicon.ico");
    asked.sort();
    assert_eq!(asked, ["/", "/fine"], "{page}");
}

#[test]
fn a_refused_frame_is_told() {
    let server = Server::new(|_, stream| {
        let port = stream.local_addr().unwrap().port();
        let body = format!("<title>P</title><iframe src='//wiki.example:{port}/'></iframe>");
        reply(stream, "200 OK", "Content-Type: text/html", body);
    });
    let Some(mut browsing) = at(&server) else { return };
    // Without a sandbox, each context has a listener of its own.
    for is_sandboxed in [true, false] {
        let sandbox = Arc::make_mut(&mut browsing.project.cx.sandbox);
        sandbox.on = is_sandboxed;
        browsing.project.cx.browser = Arc::default();
        let page = open(&browsing, "public.example", "/");
        assert!(page.contains("[`wiki.example` is in a private network, and only its own pages reach it"), "{page}");
    }
}

#[test]
fn only_its_own_pages_reach_a_private_host() {
    let server = Server::new(|path, stream| {
        let port = stream.local_addr().unwrap().port();
        let body = match path {
            "/" => format!("{}<a href='//wiki.example:{port}/wiki'>Wiki</a>", asks(&format!("wiki.example:{port}"))),
            "/name" => "<title>Name</title><p id=out></p><script>out.textContent = 'name ' + localStorage.name; \
                        localStorage.name = 'Ann'</script>"
                .to_owned(),
            "/wiki" => format!(
                "<title>Wiki</title><p id=out></p><a href='//public.example:{port}/'>Away</a>\
                 <script>fetch('/data').then(a => a.text()).then(t => out.textContent = t)</script>"
            ),
            "/data" => "wiki data".to_owned(),
            _ => "leaked".to_owned(),
        };
        reply(stream, "200 OK", "Content-Type: text/html\r\nAccess-Control-Allow-Origin: *", body);
    });
    let Some(browsing) = at(&server) else { return };
    open(&browsing, "public.example", "/name");
    let refused = |page: &str| {
        let page = page.to_owned() + &browsing.act(json!({ "action": "wait", "text": "worker refused", "ms": 20_000 }));
        let page = page + &browsing.act(json!({ "action": "wait", "text": "fetch refused", "ms": 20_000 }));
        assert!(!page.contains("reached") && !page.contains("leaked"), "{page}");
        page
    };
    let page = open(&browsing, "public.example", "/");
    let page = refused(&page);
    let link = page.lines().find(|line| line.contains("link \"Wiki\"")).unwrap();
    let away = browsing.click(link, "link \"Wiki\"");
    assert!(away.contains("leads to another host: `http://wiki.example"), "{away}");

    let wiki = open(&browsing, "wiki.example", "/wiki");
    let wiki = wiki + &browsing.act(json!({ "action": "wait", "text": "wiki data", "ms": 20_000 }));
    assert!(wiki.contains("text \"wiki data\"") && wiki.contains("kept apart"), "{wiki}");
    let away = browsing.click(wiki.lines().find(|line| line.contains("link \"Away\"")).unwrap(), "link \"Away\"");
    assert!(away.contains("leads to another host: `http://public.example"), "{away}");

    let back = open(&browsing, "public.example", "/name");
    assert!(back.contains("name Ann"), "the context of the internet was kept: {back}");
    refused(&open(&browsing, "public.example", "/"));
    let asked = server.asked();
    let leaks = ["/img", "/frame", "/script", "/worker", "/socket", "/fetch"];
    assert!(!asked.iter().any(|path| leaks.contains(&path.as_str())), "{asked:?}");
}

#[test]
fn a_refusal_is_told_to_the_agent_whose_page_was_refused() {
    let server = html(&[
        (
            "/",
            "<title>One</title><script>setTimeout(() => fetch('http://10.0.0.9/').catch(() => { out.textContent = 'done' }), 300)\
               </script><p id=out></p>",
        ),
        ("/other", "<title>Other</title><p>quiet</p>"),
    ]);
    let Some(mut browsing) = at(&server) else { return };
    let first = Arc::clone(&browsing.project.cx.browser);
    // On a slow machine it is told with the first result.
    let shown = open(&browsing, "public.example", "/");
    browsing.project.cx.browser = Arc::default();
    open(&browsing, "public.example", "/other");
    let other = browsing.act(json!({ "action": "wait", "ms": 600 }));
    assert!(!other.contains("10.0.0.9"), "{other}");
    browsing.project.cx.browser = first;
    let own = shown + &browsing.act(json!({ "action": "wait", "text": "done", "ms": 20_000 }));
    assert!(own.contains("[`10.0.0.9` is `10.0.0.9`, on this machine or in a private network"), "{own}");
}

#[test]
fn a_slow_start_holds_up_only_those_that_wait_for_the_same_browser() {
    let server = html(&[("/", "<title>Fine</title><p>fine</p>")]);
    let Some(browsing) = Browsing::at(&server) else { return };
    let home = tempfile::TempDir::new().unwrap();
    let program = home.path().join("chromium");
    std::fs::write(&program, "#!/bin/sh\nexec sleep 60\n").unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let services = Services {
        browser_path: Some(program),
        browser_profiles: vec!["slow".to_owned()],
        profiles_dir: Some(home.path().join("profiles")),
        ..Services::clone(&browsing.project.cx.services)
    };
    let mut slow = browsing.project.cx.clone();
    (slow.services, slow.browser) = (Arc::new(services), Arc::default());
    let Some(Handler::Remote(tool)) = browsing.project.registry.get("browser") else { panic!() };
    let call = |cx: &max_team_tools::ToolContext, input: Value| {
        let intent = tool.action(cx, &input).unwrap();
        run_remote(Arc::clone(tool), cx.clone(), input, intent, false)
    };
    let url = format!("{}/", browsing.base);
    let late = call(&slow, json!({ "action": "open", "url": url, "profile": "slow" }));
    let quick = call(&browsing.project.cx, json!({ "action": "open", "url": url }));
    let seen = browsing.runtime.block_on(async {
        tokio::select! {
            biased;
            ended = late => panic!("the slow start came first: {ended:?}"),
            seen = quick => seen.unwrap(),
        }
    });
    assert!(crate::project::text(seen).contains("fine"));
}

/// The policy has judged the host and the port of the page, so no setting is needed; nothing else of this machine is opened by that.
#[test]
fn a_local_page_that_was_judged_reaches_its_own_port_alone() {
    let hidden = Server::new(|_, stream| reply(stream, "200 OK", "Access-Control-Allow-Origin: *", "secret"));
    let body = asks(&format!("127.0.0.1:{}", hidden.port));
    let server = Server::new(move |path, stream| {
        let body = if path == "/" { body.as_str() } else { "<title>Two</title>" };
        reply(stream, "200 OK", "Content-Type: text/html", body);
    });
    let Some(mut browsing) = Browsing::at(&server) else { return };
    browsing.project.cx.services = Arc::new(Services::default());
    assert!(browsing.open("/").contains("Asks"));
    let page = browsing.act(json!({ "action": "wait", "text": "fetch refused", "ms": 10_000 }));
    assert!(page.contains("private network") && !page.contains("reached"), "{page}");
    assert!(browsing.open("/two").contains("Two"));
    let elsewhere = format!("http://127.0.0.1:{}/", hidden.port);
    browsing.act(json!({ "action": "open", "url": browsing.base }));
    assert_eq!(hidden.asked(), [""; 0], "{page}");
    assert!(browsing.act(json!({ "action": "open", "url": elsewhere })).contains("secret"));
}
