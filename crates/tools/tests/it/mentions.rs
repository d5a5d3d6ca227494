//! Files that a user's message mentions, read under the rules of `read_file`.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use max_team_core::agent::Constraints;
use max_team_core::chat::Part;
use max_team_core::limits::{MENTION_BYTES_MAX, MENTION_FILES_MAX, MENTION_IMAGES_MAX};
use max_team_core::mention::{Label, find, label};
use max_team_core::policy::{Mode, Rules, Verdict, Visibility, judge};
use max_team_tools::{PolicyCheck, mentioned, paths};

use crate::project::Project;
use crate::sight::constraints;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

fn parts(project: &Project, message: &str) -> Vec<Part> {
    mentioned(&project.cx, &find(message), MENTION_BYTES_MAX)
}

fn texts(project: &Project, message: &str) -> Vec<String> {
    let text = |part: Part| if let Part::Text { text } = part { Some(text) } else { None };
    parts(project, message).into_iter().filter_map(text).collect()
}

fn labels(project: &Project, message: &str) -> Vec<Label> {
    texts(project, message).iter().map(|text| label(text).unwrap()).collect()
}

/// The path and why it is not there.
fn refused(project: &Project, message: &str) -> (String, String) {
    let labels = labels(project, message);
    let [Label { path, note, is_included: false, .. }] = labels.as_slice() else { panic!("{labels:?}") };
    (path.clone(), note.clone())
}

#[test]
fn a_file_and_a_folder_are_read() {
    for project in Project::both() {
        project.write("src/main.rs", "fn main() {}\n// </file>\n");
        project.write("my file.txt", "spaces\n");
        let read = texts(&project, "see @src/main.rs:2, and @\"my file.txt\" in @src, again @./src/main.rs");
        let want = [
            "<file path=\"src/main.rs\">\n1\tfn main() {}\n2\t// </file>\n</file>",
            "<file path=\"my file.txt\">\n1\tspaces\n</file>",
            "<folder path=\"src\">\nsrc/\n  main.rs  24 bytes\n</folder>",
        ];
        assert_eq!(read, want);
        let absolute = format!("@{}", project.inside("src/main.rs").display());
        assert_eq!(texts(&project, &absolute).len(), 1, "a path beneath the project folder may be written in full");
    }
}

#[test]
fn a_path_that_does_not_exist_is_plain_text() {
    let project = Project::new();
    project.write("node_modules/x", "");
    for message in ["@nope.md", "@types/node", "@dataclass", "me@src", "@/components/Foo.vue", "@../nope", "hi"] {
        assert_eq!(parts(&project, message), [], "{message}");
    }
}

#[test]
fn paths_outside_are_refused_with_a_reason() {
    for project in Project::both() {
        fs::write(project.outside("secret"), "secret").unwrap();
        symlink(project.outside("secret"), project.inside("link")).unwrap();
        for path in ["../out/secret", "~/secret"] {
            let outside = (path.to_owned(), "it is outside the project folder".to_owned());
            assert_eq!(refused(&project, &format!("@{path}")), outside);
        }
        assert_eq!(
            refused(&project, &format!("@{}", project.outside("secret").display())).1,
            "it is outside the project folder"
        );
        let (path, why) = refused(&project, "@link");
        assert!(path == "link" && why.contains("symbolic link"), "{why}");
        fs::hard_link(project.outside("secret"), project.inside("twin")).unwrap();
        assert_eq!(refused(&project, "@twin"), ("twin".to_owned(), "permission mode `plan`".to_owned()));
    }
}

#[test]
fn a_link_that_stays_inside_is_followed() {
    let project = Project::new();
    project.write("a.txt", "one\n");
    symlink("a.txt", project.inside("link")).unwrap();
    assert_eq!(texts(&project, "@link"), ["<file path=\"link\">\n1\tone\n</file>"]);
}

#[test]
fn blocked_files_are_refused_by_name() {
    for project in Project::both() {
        project.write(".env", "KEY=hidden\n");
        project.write("src/main.rs", "x\n");
        let blocked = constraints(&["."], &[".env*"]);
        let mut project = project.within(&blocked);
        project.cx.policy = gate(blocked);
        let (path, why) = refused(&project, "@.env");
        assert!(path == ".env" && why.contains("`.env*`") && !why.contains("hidden"), "{why}");
        assert_eq!(parts(&project, "@.env.nope"), [], "one that does not exist is plain text");
        assert_eq!(labels(&project, "@src/main.rs").len(), 1);
        let listed = texts(&project, "@./src @src/..").join("\n");
        assert!(!listed.contains(".env"), "{listed}");
    }
}

fn gate(constraints: Constraints) -> PolicyCheck {
    PolicyCheck::new(move |tool, action| judge(&Rules::new(Mode::Default, &constraints), tool, action))
}

/// A question would have to be asked, and nobody is asked here.
#[test]
fn paths_that_need_approval_are_refused() {
    let mut project = Project::new();
    project.write("a.txt", "one\n");
    project.cx.policy = PolicyCheck::new(|tool, action| {
        let judged = judge(&Rules::new(Mode::Default, &Constraints::default()), tool, action);
        max_team_core::policy::Judgement { verdict: Verdict::Ask, rule: "the rule `Read(a.txt)`".into(), ..judged }
    });
    assert_eq!(refused(&project, "@a.txt"), ("a.txt".to_owned(), "the rule `Read(a.txt)`".to_owned()));
}

#[test]
fn pictures_come_along_and_binary_files_do_not() {
    let project = Project::new();
    (0..=MENTION_IMAGES_MAX).for_each(|index| project.write(&format!("{index}.png"), PNG));
    project.write("tool", b"\x7fELF\0\0");
    let all: String = (0..=MENTION_IMAGES_MAX).map(|index| format!("@{index}.png ")).collect();
    let read = parts(&project, &all);
    let pictures = read.iter().filter(|part| matches!(part, Part::Image { .. })).count();
    assert_eq!((pictures, read.len()), (MENTION_IMAGES_MAX, 2 * MENTION_IMAGES_MAX + 1));
    assert!(refused(&project, "@tool").1.contains("ELF"));
}

#[test]
fn files_are_bounded_in_number_and_size() {
    let project = Project::new();
    let many: String = (0..MENTION_FILES_MAX + 2).map(|index| format!("@f{index} ")).collect();
    (0..MENTION_FILES_MAX + 2).for_each(|index| project.write(&format!("f{index}"), "x\n"));
    let labels = labels(&project, &many);
    let (there, gone): (Vec<&Label>, Vec<&Label>) = labels.iter().partition(|label| label.is_included);
    assert_eq!((there.len(), gone.len()), (MENTION_FILES_MAX, 2));
    assert_eq!(gone[0].note, "a message can include at most 16 files and 192.0 KiB of text");

    let line = "x".repeat(99);
    (0..4).for_each(|index| project.write(&format!("big{index}"), format!("{line}\n").repeat(5_000)));
    let read = texts(&project, "@big0 @big1 @big2 @big3");
    let all: usize = read.iter().map(String::len).sum();
    assert!(all <= MENTION_BYTES_MAX + 1_000, "{all}");
    let notes: Vec<String> = read.iter().map(|text| label(text).unwrap().note).collect();
    assert!(notes[0].contains("lines 1-") && notes[0].contains("read on with offset"), "{notes:?}");
    assert!(notes[3].contains("at most 16 files") || notes[3].contains("only the first"), "{notes:?}");
    let cut = mentioned(&project.cx, &find("@big0"), 2_000);
    let [Part::Text { text }] = cut.as_slice() else { panic!("{cut:?}") };
    assert_eq!(label(text).unwrap().note, "only the first 19 lines are included");
}

#[test]
fn paths_leave_out_what_git_ignores_and_what_is_hidden() {
    for project in Project::both() {
        project.write(".gitignore", "target\n*.log\n");
        for path in ["src/main.rs", "docs/a b.md", "target/x", "a.log", ".github/w.yml", "prod.env"] {
            project.write(path, "");
        }
        let mut project = project;
        project.cx.sight = Arc::new(Visibility::from_constraints(&constraints(&["."], &["*.env"])));
        assert_eq!(paths(&project.cx, 100), ["docs/", "docs/a b.md", "src/", "src/main.rs"]);
        assert_eq!(paths(&project.cx, 3).len(), 3);
    }
}
