//! Clicks on elements that others cover, and what is shown of passwords.

use super::*;

#[test]
fn a_click_on_a_covered_element_is_refused_with_what_covers_it() {
    let server = html(&[
        (
            "/",
            "<title>Shop</title><p id=out></p><button onclick=\"out.textContent = 'bought'\">Buy</button>\
             <label><span>Keep me</span><input type=checkbox style='position:absolute;opacity:0;width:9px;height:9px'></label>\
             <input aria-label=Name style='position:absolute;left:400px;top:60px'>\
             <div id=cookies style='position:fixed;inset:0;background:#ccc' role=dialog aria-label='Cookies'>We use cookies \
             <button onclick=\"cookies.remove()\" style='position:absolute;left:10px;top:300px'>Fine</button></div>",
        ),
        (
            "/frame",
            "<title>Framed</title><div style='height:40px'></div><iframe src=/inner></iframe>\
                    <div id=veil style='position:fixed;inset:0'></div><a href='javascript:veil.remove()' \
                    style='position:fixed;left:0;top:0;z-index:1'>Lift</a>",
        ),
        ("/inner", "<button onclick=\"document.body.append('pressed')\">Press</button>"),
        (
            "/sticky",
            "<title>Long</title><div id=bar style='position:fixed;top:0;left:0;right:0;height:80px;background:red'>Bar</div>\
                     <div style='height:3000px'></div><button onclick=\"document.title = 'Hit'\">Far</button>\
                     <div style='height:3000px'></div>",
        ),
    ]);
    let Some(browsing) = Browsing::at(&server) else { return };
    let page = browsing.open("/");
    let buy = json!({ "action": "click", "ref": reference(&page, "button \"Buy\"") });
    let words = browsing.refused(&buy);
    assert!(words.contains("covered by") && words.contains("<div id=cookies> \"We use cookies"), "{words}");
    let name = json!({ "action": "type", "ref": reference(&page, "textbox \"Name\""), "text": "Ann" });
    assert!(browsing.refused(&name).contains("covered by"));
    let page = browsing.click(&page, "button \"Fine\"");
    assert!(!page.contains("bought") && !page.contains("We use cookies"), "{page}");
    assert!(browsing.act(buy).contains("bought"));
    assert!(browsing.act(name).contains("value=\"Ann\""));
    // What is drawn in the place of a box is its label.
    let kept = browsing.click(&page, "checkbox \"Keep me\"");
    assert!(kept.contains("checkbox \"Keep me\" focused checked"), "{kept}");

    let page = browsing.open("/frame");
    let press = json!({ "action": "click", "ref": reference(&page, "button \"Press\"") });
    assert!(browsing.refused(&press).contains("covered by"), "{page}");
    browsing.click(&page, "link \"Lift\"");
    assert!(browsing.act(press).contains("pressed"));

    let page = browsing.open("/sticky");
    let hit = browsing.click(&page, "button \"Far\"");
    assert!(hit.contains(": Hit]"), "{hit}");
}

#[test]
fn a_password_is_dots_wherever_it_is_shown() {
    let server = html(&[(
        "/",
        "<title>In</title><label>Name <input></label><label>Password <input type=Password value=old-one></label>\
         <iframe srcdoc=\"<label>Pin <input type=password></label>\"></iframe>",
    )]);
    let Some(browsing) = Browsing::at(&server) else { return };
    let page = browsing.open("/");
    assert!(page.contains("textbox \"Password\" value=\"••••••\" password") && !page.contains("old-one"), "{page}");
    for (field, shown) in [("Name", "\"s3cret\""), ("Password", "\"••••••\""), ("Pin", "\"••••••\"")]
    {
        let input =
            json!({ "action": "type", "ref": reference(&page, &format!("textbox \"{field}\"")), "text": "s3cret" });
        let preview = browsing.project.action("browser", &input).unwrap().preview;
        assert!(preview.starts_with(&format!("type {shown} [e")), "{preview}");
        assert_eq!(preview.contains("s3cret"), field == "Name", "{preview}");
        let typed = browsing.act(input);
        assert_eq!(typed.contains("s3cret"), field == "Name" || typed.contains("\"Name\" value=\"s3cret\""), "{typed}");
    }
    let typed = browsing.act(json!({ "action": "snapshot" }));
    assert_eq!(typed.matches("s3cret").count(), 1, "only the name: {typed}");
}
