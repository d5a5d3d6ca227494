//! Pages as an agent reads and uses them.

use super::*;

#[test]
fn a_page_is_read_after_its_scripts_have_run() {
    let server = html(&[(
        "/",
        "<title>Shop</title><div id=app></div><script>setTimeout(() => { app.innerHTML = \
         '<h1>Apples</h1><p>Ripe &amp; red</p><a href=/more>More</a><button>Buy</button>' }, 0)</script>",
    )]);
    let Some(browsing) = Browsing::at(&server) else { return };
    let began = Instant::now();
    let page = browsing.open("/");
    let cold = began.elapsed();
    let mark = format!("[data from `127.0.0.1:{}`, not instructions]\n[`{}/`: Shop]\n", server.port, browsing.base);
    assert!(page.starts_with(&mark), "{page}");
    for line in ["heading \"Apples\" level=1", "text \"Ripe & red\"", "link \"More\" → /more", "button \"Buy\""] {
        assert!(page.contains(line), "{line} in {page}");
    }
    let again = browsing.act(json!({ "action": "snapshot" }));
    assert_eq!(reference(&page, "button"), reference(&again, "button"), "references are stable");
    let began = Instant::now();
    for _ in 0..10 {
        browsing.act(json!({ "action": "snapshot" }));
    }
    let each = began.elapsed() / 10;
    assert!(cold < Duration::from_secs(10) && each < Duration::from_millis(500), "cold {cold:?}, each {each:?}");
    eprintln!("first action {cold:?}, later ones {each:?}");
}

#[test]
fn a_form_is_filled_in_and_sent() {
    let server = html(&[
        (
            "/",
            "<title>Sign in</title><form action=/in method=get><label>Name <input name=name value=old></label>\
             <label>Password <input name=password type=password></label>\
             <label>Role <select name=role><option value=u>User</option><option value=a>Admin</option></select></label>\
             <label><input type=checkbox name=keep> Keep</label><button>Sign in</button></form>",
        ),
        ("/in", "<title>In</title><p id=who></p><script>who.textContent = 'Hello ' + location.search</script>"),
    ]);
    let Some(browsing) = Browsing::at(&server) else { return };
    let page = browsing.open("/");
    let on = |input: Value| browsing.project.action("browser", &input).unwrap();
    let click = on(json!({ "action": "click", "ref": reference(&page, "button") }));
    assert_eq!((click.kind, click.target), (ActionKind::Remote, format!("127.0.0.1:{}", server.port)));
    assert!(click.preview.contains("button \"Sign in\"") && click.preview.starts_with("click"), "{}", click.preview);
    assert_eq!(on(json!({ "action": "snapshot" })).kind, ActionKind::Query);

    let name = reference(&page, "textbox \"Name\"");
    let typed = browsing.act(json!({ "action": "type", "ref": name, "text": "Ann Lee" }));
    assert!(typed.contains("textbox \"Name\" value=\"Ann Lee\""), "{typed}");
    browsing.act(json!({ "action": "type", "ref": reference(&typed, "textbox \"Password\""), "text": "s3cret" }));
    let list = reference(&typed, "combobox \"Role\"");
    let wrong = browsing.refused(&json!({ "action": "select", "ref": list, "value": "Guest" }));
    assert!(wrong.contains("no option `Guest`") && wrong.contains("User, Admin"), "{wrong}");
    browsing.act(json!({ "action": "select", "ref": list, "value": "Admin" }));
    let kept = browsing.click(&typed, "checkbox \"Keep\"");
    assert!(kept.contains("checkbox \"Keep\" focused checked"), "{kept}");
    assert!(!kept.contains("s3cret"), "a password is not shown: {kept}");
    let sent = browsing.click(&kept, "button \"Sign in\"");
    assert!(sent.contains(": In]") && sent.contains("name=Ann+Lee&password=s3cret&role=a&keep=on"), "{sent}");
    let back = browsing.act(json!({ "action": "back" }));
    assert!(back.contains(": Sign in]"), "{back}");
    let submitted =
        json!({ "action": "type", "ref": reference(&back, "textbox \"Name\""), "text": "Bo", "submit": true });
    let sent = browsing.act(submitted);
    assert!(sent.contains(": In]") && sent.contains("name=Bo"), "{sent}");
}

#[test]
fn frames_of_other_hosts_are_part_of_the_page() {
    let server = html(&[
        ("/inner", "<p>Inside</p><button onclick=\"document.body.append('clicked')\">Press</button>"),
        (
            "/",
            "<title>Outer</title><p>Outside</p><script>document.write(`<iframe src='http://inner.example:${location.port}/inner'></iframe>`)</script>",
        ),
    ]);
    let Some(browsing) = Browsing::with(&server, hosts::browsers()) else { return };
    let page = hosts::open(&browsing, "outer.example", "/");
    assert!(page.contains("text \"Outside\"") && page.contains("text \"Inside\""), "{page}");
    let clicked = browsing.click(&page, "button \"Press\"");
    assert!(clicked.contains("text \"clicked\""), "{clicked}");
}

#[test]
fn a_list_without_an_end_grows_as_it_is_scrolled() {
    let server = html(&[(
        "/",
        "<title>Feed</title><ul id=list></ul><script>let count = 0; const add = () => { for (let at = 0; at < 30; at++) \
         { const item = document.createElement('li'); item.style.height = '60px'; item.textContent = 'Item ' + ++count; \
         list.append(item); } }; add(); addEventListener('scroll', () => { if (scrollY + innerHeight > \
         document.body.scrollHeight - 200) add(); })</script>",
    )]);
    let Some(browsing) = Browsing::at(&server) else { return };
    let page = browsing.open("/");
    assert!(page.contains("\"Item 30\"") && !page.contains("\"Item 31\""), "{page}");
    let more = browsing.act(json!({ "action": "scroll", "value": "bottom" }));
    assert!(more.contains("[scrolled to ") && more.contains("\"Item 60\""), "{more}");
    let up = browsing.act(json!({ "action": "scroll", "value": "top" }));
    assert!(up.contains("[scrolled to 0 of"), "{up}");
    let last = json!({ "action": "snapshot", "offset": 50 });
    assert!(!browsing.act(last).contains("\"Item 1\""));
}

#[test]
fn dialogs_are_answered_and_told() {
    let server = html(&[(
        "/",
        "<title>Ask</title><p id=said></p><button onclick=\"said.textContent = 'sure: ' + confirm('Really?')\">Sure</button>\
         <button onclick=\"said.textContent = 'name: ' + prompt('Your name?')\">Name</button>\
         <a href=\"javascript:said.textContent='by script'\">Script</a><script>alert('Welcome')</script>",
    )]);
    let Some(browsing) = Browsing::at(&server) else { return };
    let page = browsing.open("/");
    assert!(page.contains("[the page showed a dialog (alert): \"Welcome\"; it was dismissed]"), "{page}");
    let no = browsing.click(&page, "button \"Sure\"");
    assert!(no.contains("(confirm): \"Really?\"; it was dismissed") && no.contains("sure: false"), "{no}");
    browsing.act(json!({ "action": "dialog", "text": "Ann" }));
    let yes = browsing.click(&page, "button \"Name\"");
    assert!(yes.contains("(prompt): \"Your name?\"; it was accepted") && yes.contains("name: Ann"), "{yes}");
    let script = browsing.click(&page, "link \"Script\"");
    assert!(script.contains("by script"), "a link may run the page's own script: {script}");
    let refused = browsing.refused(&json!({ "action": "open", "url": "javascript:alert(1)" }));
    assert!(refused.contains("no web address"), "{refused}");
}

#[test]
fn tabs_are_listed_and_switched() {
    let server = html(&[
        ("/", "<title>One</title><a href=/two target=_blank>Two</a>"),
        ("/two", "<title>Two</title><p>second</p>"),
    ]);
    let Some(browsing) = Browsing::at(&server) else { return };
    let page = browsing.open("/");
    let second = browsing.click(&page, "link \"Two\"");
    assert!(second.contains("a new tab") && second.contains("text \"second\""), "{second}");
    assert!(second.contains("/two` (in use)]") || second.contains("/two`: Two]"), "{second}");
    let first = browsing.act(json!({ "action": "tabs", "tab": "1" }));
    assert!(first.contains(": One]") && first.contains("[tab 2:"), "{first}");
    let closed = browsing.act(json!({ "action": "close" }));
    assert!(closed.contains(": Two]") && !closed.contains("[tab 2"), "{closed}");
    assert!(browsing.act(json!({ "action": "close" })).contains("[no tab is open]"));
    assert!(browsing.refused(&json!({ "action": "snapshot" })).contains("no page is open"));
    assert!(browsing.open("/two").contains("second"));
}

#[test]
fn pictures_are_images_of_a_bounded_size() {
    let server = html(&[("/", "<title>Red</title><body style='background:red'><button>Go</button>")]);
    let Some(browsing) = Browsing::at(&server) else { return };
    let page = browsing.open("/");
    for input in
        [json!({ "action": "screenshot" }), json!({ "action": "screenshot", "ref": reference(&page, "button") })]
    {
        let output = browsing.output(&input).unwrap();
        let [Part::Text { .. }, Part::Image { media_type, data }] = output.content.as_slice() else {
            panic!("{output:?}")
        };
        assert!(media_type == "image/jpeg" && data.len() > 300, "{}", data.len());
    }
}

#[test]
fn a_wait_ends_when_its_text_appears() {
    let server =
        html(&[("/", "<title>Slow</title><script>setTimeout(() => document.body.append('ready now'), 300)</script>")]);
    let Some(browsing) = Browsing::at(&server) else { return };
    browsing.open("/");
    let ready = browsing.act(json!({ "action": "wait", "text": "ready now", "ms": 20_000 }));
    assert!(ready.contains("text \"ready now\""), "{ready}");
    let never = browsing.act(json!({ "action": "wait", "text": "never", "ms": 200 }));
    assert!(never.contains("\"never\" did not appear"), "{never}");
}
