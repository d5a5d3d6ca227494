//! Globs as tables, and what must hold for any of them as properties.

use proptest::prelude::*;

use super::*;

fn glob(text: &str) -> Glob {
    Glob::new(text, false).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn names() {
    let table = [
        ("*.env", "a/.env", true),
        ("*.env", "a.env/b", false),
        ("*_test.go", "pkg/a_test.go", true),
        ("*_test.go", "pkg/a_test.go.txt", false),
        ("*_test.go", "_test.go", true),
        ("tests/**", "tests/a/b.rs", true),
        ("tests/**", "tests", false),
        ("tests/**", "a/tests/b.rs", false),
        ("**/tests/**", "a/tests/b.rs", true),
        ("**/tests/**", "tests/b.rs", true),
        ("**/tests/**", "tests", false),
        ("tests/", "tests/a/b.rs", true),
        ("src/*.rs", "src/a.rs", true),
        ("src/*.rs", "src/a/b.rs", false),
        ("src/**/*.rs", "src/b.rs", true),
        ("src/**/*.rs", "src/a/b/c.rs", true),
        ("./src/a", "src/a", true),
        ("/a", "a", true),
        ("/a", "b/a", false),
        ("a", "b/a", true),
        ("a**b", "axxb", true),
        ("a**b", "ax/xb", false),
        ("**", "a/b", true),
        ("?.rs", "é.rs", true),
        ("?.rs", "ab.rs", false),
        ("[abc].rs", "b.rs", true),
        ("[!abc].rs", "b.rs", false),
        ("[^a-c].rs", "d.rs", true),
        ("[]x].rs", "].rs", true),
        ("[a-].rs", "-.rs", true),
        ("\\*.rs", "*.rs", true),
        ("\\*.rs", "a.rs", false),
        ("\\{.rs", "{.rs", true),
        ("A.rs", "a.rs", false),
        ("a/**/b/**/c", "a/b/c", true),
        ("a/**/b/**/c", "a/x/b/y/z/c", true),
        ("a/**/b/**/c", "a/x/y/c", false),
    ];
    for (pattern, path, want) in table {
        assert_eq!(glob(pattern).names(path), want, "{pattern} {path}");
    }
}

#[test]
fn touches() {
    let table = [
        ("*secret*", "a/My-Secrets/b/c.txt", true),
        ("*.env", "A.ENV", true),
        ("*.ENV", "prod.env", true),
        (".env*", ".Env.local", true),
        ("*credentials*", "src/credentials.rs", true),
        ("*credentials*", "src/credit.rs", false),
        ("private/keys", "private/keys/a/b", true),
        ("private/keys", "private/keys2", false),
        ("private/keys", "x/private/keys/a", false),
        ("private/**", "private", false),
        ("private/**", "private/a", true),
        ("*", ".", true),
    ];
    for (pattern, path, want) in table {
        assert_eq!(Glob::new(pattern, true).unwrap().touches(path), want, "{pattern} {path}");
    }
}

#[test]
fn owns() {
    let table = [
        ("src", "src/a/b.rs", true),
        ("src", "src", true),
        ("src", "a/src/b", false),
        ("src/auth/", "src/auth/a.rs", true),
        ("README.md", "README.md", true),
        ("README.md", "docs/README.md", false),
        ("*.md", "docs/README.md", true),
        ("src/*", "src/a", true),
        ("src/*", "src/a/b", false),
        ("src/**", "src/a/b", true),
    ];
    for (pattern, path, want) in table {
        assert_eq!(glob(pattern).owns(path), want, "{pattern} {path}");
    }
}

#[test]
fn a_folder_is_owned_with_all_that_is_in_it() {
    let owned = |pattern: &str, path| is_owned(&[pattern.to_owned()], path);
    assert!(owned("vendor/**", "vendor") && owned("vendor/**", "vendor/six.py") && owned("a/b/**", "a/b"));
    assert!(!owned("vendor/**", "vendored") && !owned("a/b/**", "a") && owned("./**", "a/b") && owned("**", "a"));
}

#[test]
fn bad_patterns_say_why() {
    let long = "a".repeat(GLOB_BYTES_MAX + 1);
    let table = [
        ("", GlobError::Empty),
        ("/", GlobError::Empty),
        ("./", GlobError::Empty),
        ("[ab", GlobError::Open),
        ("[]", GlobError::Open),
        ("[a/b]", GlobError::Open),
        ("a\\", GlobError::Escape),
        ("*.{ts,js}", GlobError::Braces),
        ("../a", GlobError::Dots),
        ("a/./b", GlobError::Dots),
        (&long, GlobError::Long),
    ];
    for (text, want) in table {
        assert_eq!(Glob::new(text, false), Err(want), "{text}");
    }
    assert!(overlap("[a", "b"), "when in doubt");
}

#[test]
fn overlaps() {
    let table = [
        ("src/**", "tests/**", false),
        ("src/**", "src/a.rs", true),
        ("src", "src/auth/**", true),
        ("src/auth", "src/authors", false),
        ("src/auth/", "src/auth/x.rs", true),
        ("*.rs", "*.go", false),
        ("*.rs", "src/**", true),
        ("*_test.go", "pkg/**", true),
        ("README.md", "src/**", false),
        ("README.md", "*.md", true),
        ("**", "a", true),
        ("src/*.rs", "src/*.go", false),
        ("src/a*", "src/*b", true),
        ("src/a*", "src/b*", false),
        ("src/*/x", "src/**/y", false),
        ("**/a/**", "b/**", true),
        ("src/[ab].rs", "src/c.rs", false),
        ("src/[ab].rs", "src/b.rs", true),
        ("Src/a", "src/A", true),
        ("a/b/c", "a/b/c/d/e", true),
        ("a", "b", false),
    ];
    for (a, b, want) in table {
        assert_eq!((overlap(a, b), overlap(b, a)), (want, want), "{a} {b}");
    }
}

#[test]
fn commands_are_allowed_by_their_first_words() {
    let allowed = ["go test".to_owned(), " git  diff ".to_owned(), String::new(), "grep".to_owned()];
    let table: [(&[&str], bool); 8] = [
        (&["go", "test", "./..."], true),
        (&["go", "test"], true),
        (&["go", "testify"], false),
        (&["go"], false),
        (&["git", "diff", "--stat"], true),
        (&["/usr/bin/grep", "x"], false),
        (&["go test"], false),
        (&[], false),
    ];
    for (argv, want) in table {
        assert_eq!(commands(&allowed, argv), want, "{argv:?}");
    }
    assert!(!commands(&[], &["ls"]));
}

/// What a glob means, said once more without any cleverness.
fn slow(pattern: &[char], text: &[char]) -> bool {
    match (pattern, text) {
        ([], text) => text.is_empty(),
        (['*', rest @ ..], text) => (0..=text.len()).any(|from| slow(rest, &text[from..])),
        (['?', rest @ ..], [_, text @ ..]) => slow(rest, text),
        ([a, rest @ ..], [b, text @ ..]) => a == b && slow(rest, text),
        _ => false,
    }
}

fn path() -> impl Strategy<Value = String> {
    proptest::collection::vec("[ab]{1,3}", 1..5).prop_map(|parts| parts.join("/"))
}

fn pattern() -> impl Strategy<Value = String> {
    let part = prop_oneof![Just("**".to_owned()), "[ab*?]{1,4}", "[ab]{1,3}", Just("[ab]*".to_owned())];
    let ending = prop_oneof![Just(""), Just("/")];
    (proptest::collection::vec(part, 1..5), ending).prop_map(|(parts, ending)| parts.join("/") + ending)
}

#[test]
fn a_folder_stands_for_the_files_in_it() {
    let allowed: Vec<String> = ["./", "python3 ./", "sh scripts/", "go test"].map(str::to_owned).to_vec();
    let table: [(&[&str], bool); 16] = [
        (&["./run.sh"], true),
        (&["./run.sh", "--all"], true),
        (&["bin/tool"], true),
        (&["run.sh"], false),
        (&["/bin/sh"], false),
        (&["../x"], false),
        (&["./a/../../x"], false),
        (&["python3", "main.py"], true),
        (&["python3", "./tools/gen.py", "-v"], true),
        (&["python3", "-c", "x"], false),
        (&["python3", "/tmp/x.py"], false),
        (&["python3"], false),
        (&["sh", "scripts/a.sh"], true),
        (&["sh", "other/a.sh"], false),
        (&["sh", "scripts"], false),
        (&["go", "test", "./..."], true),
    ];
    for (argv, want) in table {
        assert_eq!(commands(&allowed, argv), want, "{argv:?}");
    }
}

proptest! {
    #[test]
    fn one_segment_is_matched_by_its_wildcards(pattern in "[ab*?]{1,6}", name in "[ab]{1,8}") {
        let slow = slow(&pattern.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>());
        let glob = glob(&pattern);
        prop_assert_eq!(glob.names(&name), slow || pattern == "**");
        let deep = ["x/", &name, "/y"].concat();
        prop_assert!(!slow || glob.touches(&deep));
    }

    #[test]
    fn a_path_that_both_globs_match_is_an_overlap(a in pattern(), b in pattern(), path in path()) {
        if glob(&a).owns(&path) && glob(&b).owns(&path) {
            prop_assert!(overlap(&a, &b) && overlap(&b, &a), "{} {} {}", a, b, path);
        }
    }

    #[test]
    fn everything_overlaps_itself(a in pattern()) {
        prop_assert!(overlap(&a, &a));
    }

    /// With backtracking over every star this would outlive the sun.
    #[test]
    fn many_stars_cost_no_more_than_they_must(stars in 20_usize..200, letters in 100_usize..2_000) {
        let bomb = "a*".repeat(stars) + "b";
        let name = "a".repeat(letters);
        prop_assert!(!glob(&bomb).touches(&name));
        let bomb = "**/a/".repeat(stars / 4) + "b";
        let path = "a/".repeat(letters) + "a";
        prop_assert!(!glob(&bomb).touches(&path));
        prop_assert!(!overlap(&("a*".repeat(stars) + "b"), &("a*".repeat(stars) + "c")));
    }

    #[test]
    fn nothing_breaks_the_reader(text in any::<String>(), path in any::<String>()) {
        if let Ok(glob) = Glob::new(&text, true) {
            let _ = (glob.names(&path), glob.touches(&path), glob.owns(&path), overlap(&text, &path));
        }
    }
}
