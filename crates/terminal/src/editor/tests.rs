//! The editor under any keys: it never panics, and the cursor stands between graphemes.

use proptest::prelude::*;

use super::*;

fn press(editor: &mut Editor, code: KeyCode, modifiers: KeyModifiers) -> bool {
    editor.key(KeyEvent::new(code, modifiers))
}

fn control(editor: &mut Editor, c: char) {
    assert!(press(editor, KeyCode::Char(c), KeyModifiers::CONTROL));
}

fn alt(editor: &mut Editor, c: char) {
    assert!(press(editor, KeyCode::Char(c), KeyModifiers::ALT));
}

fn written(text: &str) -> Editor {
    let mut editor = Editor::default();
    editor.insert(text);
    editor
}

#[test]
fn shell_keys_edit() {
    let mut editor = written("one two\nthree four");
    control(&mut editor, 'w');
    assert_eq!(editor.whole(), "one two\nthree ");
    control(&mut editor, 'a');
    control(&mut editor, 'k');
    assert_eq!(editor.whole(), "one two\n");
    control(&mut editor, 'y');
    assert_eq!(editor.whole(), "one two\nthree ");
    alt(&mut editor, 'b');
    alt(&mut editor, 'b');
    control(&mut editor, 'u');
    assert_eq!(editor.whole(), "two\nthree ");
    control(&mut editor, 'e');
    control(&mut editor, 'k');
    assert_eq!(editor.whole(), "twothree ");
    alt(&mut editor, 'f');
    editor.insert("!");
    assert_eq!(editor.whole(), "twothree! ");
    assert!(!press(&mut editor, KeyCode::Enter, KeyModifiers::NONE));
}

#[test]
fn the_cursor_moves_by_what_is_seen() {
    let mut editor = written("a👩‍💻e\u{301}中");
    assert_eq!(editor.layout(20).cursor, (0, 6));
    for column in [4, 3, 1, 0, 0] {
        press(&mut editor, KeyCode::Left, KeyModifiers::NONE);
        assert_eq!(editor.layout(20).cursor, (0, column));
    }
    press(&mut editor, KeyCode::Delete, KeyModifiers::NONE);
    press(&mut editor, KeyCode::Delete, KeyModifiers::NONE);
    assert_eq!(editor.whole(), "e\u{301}中");
}

#[test]
fn rows_wrap_by_width_and_up_and_down_keep_the_column() {
    let mut editor = written("你好世界 hello world\nshort\n再见了朋友们");
    let layout = editor.layout(10);
    assert_eq!(layout.rows, ["你好世界 ", "hello ", "world", "short", "再见了朋友", "们"]);
    assert_eq!(layout.cursor, (5, 2));
    let mut places = Vec::new();
    while editor.up(10) {
        places.push(editor.layout(10).cursor);
    }
    assert_eq!(places, [(4, 2), (3, 2), (2, 2), (1, 2), (0, 2)]);
    assert!(editor.down(10));
    control(&mut editor, 'e');
    assert_eq!(editor.layout(10).cursor, (2, 5));
    assert!(editor.up(10));
    assert_eq!(editor.layout(10).cursor, (1, 5));
}

#[test]
fn a_large_paste_is_a_chip_and_is_sent_whole() {
    let mut editor = written("see ");
    let large = "line\r\n".repeat(1_000);
    editor.paste(&large, |lines| format!("pasted {lines} lines"));
    editor.insert(" ok");
    assert_eq!(editor.layout(80).rows, ["see [pasted 1000 lines] ok"]);
    assert_eq!(editor.layout(80).cursor, (0, 26));
    assert_eq!(editor.whole(), format!("see {} ok", "line\n".repeat(1_000)));
    for _ in 0..4 {
        press(&mut editor, KeyCode::Backspace, KeyModifiers::NONE);
    }
    assert_eq!(editor.whole(), "see ");
    editor.paste("small\tone", |_| String::new());
    assert_eq!(editor.take(), "see small    one");
    assert!(editor.is_empty());
}

#[test]
fn a_backslash_before_enter_is_a_newline() {
    let mut editor = written("a\\");
    assert!(editor.continue_line());
    assert!(!editor.continue_line());
    assert_eq!(editor.whole(), "a\n");
}

#[test]
fn typed_text_cannot_drive_the_terminal() {
    assert_eq!(written("a\u{1b}[2J\u{10ff00}b").whole(), "a␛[2Jb");
}

fn any_key() -> impl Strategy<Value = (KeyCode, KeyModifiers)> {
    let code = prop_oneof![
        4 => prop::sample::select(vec!['a', 'b', 'd', 'e', 'f', 'h', 'j', 'k', 'u', 'w', 'y', ' ', '中', '\u{301}', '\u{200d}', '👩', '💻', '🇨', '🇳'])
            .prop_map(KeyCode::Char),
        2 => prop::sample::select(vec![
            KeyCode::Left, KeyCode::Right, KeyCode::Home, KeyCode::End, KeyCode::Backspace, KeyCode::Delete, KeyCode::Up,
            KeyCode::Down, KeyCode::Enter, KeyCode::Insert,
        ]),
    ];
    let modifiers = prop::sample::select(vec![
        KeyModifiers::NONE,
        KeyModifiers::NONE,
        KeyModifiers::NONE,
        KeyModifiers::CONTROL,
        KeyModifiers::ALT,
    ]);
    (code, modifiers)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_keys_leave_the_cursor_between_graphemes(
        keys in prop::collection::vec(any_key(), 0..80),
        pastes in prop::collection::vec((0usize..80, "[a-z\n中\u{301}]{0,8}"), 0..4),
        columns in 2usize..30,
    ) {
        let mut editor = Editor::default();
        for (index, (code, modifiers)) in keys.into_iter().enumerate() {
            for (at, text) in &pastes {
                if *at == index {
                    editor.paste(&text.repeat(if index % 2 == 0 { 1 } else { 2_500 }), |lines| format!("p {lines}"));
                }
            }
            match code {
                KeyCode::Up => drop(editor.up(columns)),
                KeyCode::Down => drop(editor.down(columns)),
                _ => drop(press(&mut editor, code, modifiers)),
            }
            let mut boundaries = editor.text.grapheme_indices(true).map(|(at, _)| at).chain([editor.text.len()]);
            prop_assert!(boundaries.any(|at| at == editor.cursor), "{:?} {}", editor.text, editor.cursor);
            let layout = editor.layout(columns);
            prop_assert!(layout.cursor.0 < layout.rows.len());
            prop_assert!(layout.cursor.1 <= columns.max(16), "{:?} {layout:?}", editor.text);
            prop_assert_eq!(layout.rows.concat(), editor.layout(1_000).rows.concat());
        }
    }
}
