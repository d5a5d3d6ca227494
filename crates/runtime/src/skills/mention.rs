//! Skills that a user asks for: `/name arguments` at the beginning of a message, `@skill:name` and `$name` in it,
//! `@skill:all` and `@skill:none`.
//!
//! It is a rule, not a model's guess. The message stays as it is; the skills' texts are added behind it. Text in code
//! marks is not searched.

use super::hand::SkillWishes;
use super::tool::{ASKED_FOR, SkillContext, wrapped};
use super::{Catalogue, MENTIONED_BYTES_MAX, Skill, State, fill, read::is_name};
use max_team_core::mention::prose;
use max_team_core::suggest::did_you_mean;

/// Skills that one message may ask for.
const MENTIONS_MAX: usize = 32;

/// What a message asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Mentions {
    /// All skills are wanted.
    pub all: bool,
    /// No skill at all.
    pub none: bool,
    /// These, each with the text after its name.
    pub names: Vec<(String, String)>,
}

/// What is added to a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Expanded {
    /// The text to add; empty: nothing was asked for.
    pub text: String,
    /// The user's wishes about skills.
    pub wish: SkillWishes,
}

/// Finds the skills that a message asks for. `known` says whether a bare name is a skill's.
pub(super) fn find(message: &str, known: impl Fn(&str) -> bool) -> Mentions {
    let mut mentions = Mentions::default();
    if let Some(rest) = message.trim_start().strip_prefix('/') {
        let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if known(name) {
            mentions.names.push((name.to_owned(), arguments.trim().to_owned()));
            return mentions;
        }
    }
    let prose = prose(message);
    let mut before = ' ';
    let mut rest = prose.as_str();
    while let Some(letter) = rest.chars().next() {
        let starts = before.is_whitespace() || (!before.is_alphanumeric() && !matches!(before, '$' | '@' | '{' | '/'));
        let marked = ["@skill:", "$"].iter().find_map(|mark| Some((*mark, rest.strip_prefix(mark)?)));
        if let Some((mark, after)) = marked.filter(|_| starts) {
            let name = leading(after);
            match (mark, name) {
                (_, "all") => mentions.all = true,
                (_, "none") => mentions.none = true,
                ("$", name) if !known(name) => {}
                (_, "") => {}
                (_, name) if mentions.names.iter().any(|(known, _)| known == name) => {}
                (_, name) if mentions.names.len() < MENTIONS_MAX => {
                    mentions.names.push((name.to_owned(), String::new()));
                }
                _ => {}
            }
            rest = after.get(name.len()..).unwrap_or_default();
            before = 'x';
            continue;
        }
        before = letter;
        rest = rest.get(letter.len_utf8()..).unwrap_or_default();
    }
    mentions
}

/// What several messages of one turn ask for: each is searched by itself, and `@skill:none` counts only if no message
/// asks for a skill.
fn find_in_all(messages: &[String], known: impl Fn(&str) -> bool) -> Mentions {
    let mut all = Mentions::default();
    for found in messages.iter().map(|message| find(message, &known)) {
        all.none |= found.none;
        if !found.none {
            all.all |= found.all;
            let fresh: Vec<_> = found.names.into_iter().filter(|named| !all.names.contains(named)).collect();
            all.names.extend(fresh);
        }
    }
    all.names.truncate(MENTIONS_MAX);
    all.none &= !all.all && all.names.is_empty();
    all
}

/// The name that a text begins with; a full stop or a colon behind it ends the sentence.
fn leading(text: &str) -> &str {
    let ends = |letter: char| !(letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | ':'));
    let name = text.split(ends).next().unwrap_or_default();
    name.trim_end_matches(['.', ':', '-'])
}

/// The texts that are added to a user's messages.
pub(crate) fn expand(messages: &[String], catalogue: &Catalogue, asked: &SkillContext<'_>) -> Expanded {
    let known = |name: &str| is_name(name) && catalogue.get(name).is_some();
    let mut mentions = find_in_all(messages, known);
    if mentions.none {
        let text = "[The user wants no skill to be used for this.]".to_owned();
        return Expanded { text, wish: SkillWishes { none: true, ..SkillWishes::default() } };
    }
    if mentions.all {
        let rest = catalogue.all().filter(|skill| skill.is_callable());
        let rest: Vec<_> = rest.map(|skill| (skill.name.clone(), String::new())).collect();
        mentions.names.extend(rest);
        mentions.names.dedup_by(|one, other| one.0 == other.0);
    }
    let (mut parts, mut left) = (Vec::new(), MENTIONED_BYTES_MAX);
    for (name, arguments) in &mentions.names {
        let told = match catalogue.get(name) {
            None => {
                format!("[There is no skill `{name}`{}]", did_you_mean(name, catalogue.all().map(|s| s.name.as_str())))
            }
            Some(skill) => told(skill, arguments, catalogue, asked, left),
        };
        left = left.saturating_sub(told.len());
        parts.push(told);
    }
    let names = mentions.names.into_iter().map(|(name, _)| name);
    let callable = names.filter(|name| catalogue.get(name).is_some_and(Skill::is_callable)).collect();
    Expanded { text: parts.join("\n\n"), wish: SkillWishes { none: false, names: callable } }
}

fn told(skill: &Skill, arguments: &str, catalogue: &Catalogue, asked: &SkillContext<'_>, left: usize) -> String {
    let name = &skill.name;
    let refused = |why: String| format!("[The user asks for the skill `{name}`, which cannot be used: {why}]");
    let (skill, text) = match unusable(skill).map_or_else(|| catalogue.load(skill), Err) {
        Ok(loaded) if loaded.0.head.for_users => loaded,
        Ok(_) => return refused("it is not for users".to_owned()),
        Err(why) => return refused(why),
    };
    let mut behind = if arguments.is_empty() { String::new() } else { format!(" with the arguments `{arguments}`") };
    if let Some(contract) = &skill.contract {
        behind.push_str(&format!(" (its `input` is {})", contract.shape()));
    }
    let load = format!(
        "[The user asks for the skill `{name}`: load it with the tool `skill`{behind} before anything else, and follow it.]"
    );
    if skill.done_by().is_some() {
        return load;
    }
    let with = asked.fill(&skill, arguments);
    // A skill with commands is loaded by a tool call, so that the commands are judged and journalled like any other.
    if skill.head.for_models && (text.len() > left || !fill::commands(&text, &with).is_empty()) {
        return load;
    }
    format!("{ASKED_FOR}{}", filled(&skill, &text, arguments, asked))
}

/// The whole texts of skills that an agent's definition names. An unusable one is reported as missing; commands are
/// left to the agent.
pub(crate) fn preload(names: &[String], catalogue: &Catalogue, asked: &SkillContext<'_>) -> String {
    let (mut text, mut left) = (String::new(), MENTIONED_BYTES_MAX);
    for name in names {
        let told = match catalogue.get(name) {
            None => format!("[There is no skill `{name}`]"),
            Some(skill) => whole(skill, "", catalogue, asked)
                .and_then(|text| if text.len() <= left { Ok(text) } else { Err("it is too long".to_owned()) })
                .unwrap_or_else(|why| format!("[The skill `{name}` cannot be used: {why}]")),
        };
        left = left.saturating_sub(told.len());
        text.push_str(&format!("{}\n\n", told.trim_end()));
    }
    text
}

/// The whole text of a skill. Its commands are not run: the agent that reads the text may run them.
fn whole(skill: &Skill, arguments: &str, catalogue: &Catalogue, asked: &SkillContext<'_>) -> Result<String, String> {
    if let Some(why) = unusable(skill) {
        return Err(why);
    }
    let (skill, text) = catalogue.load(skill)?;
    Ok(filled(&skill, &text, arguments, asked))
}

/// A skill's text with its placeholders filled in. Its commands are not run: the agent that reads the text may run
/// them.
pub(super) fn filled(skill: &Skill, text: &str, arguments: &str, asked: &SkillContext<'_>) -> String {
    let left = |command: &str| fill::unrun(command, "run it yourself if you need what it prints");
    wrapped(skill, &fill::fill(text, &asked.fill(skill, arguments), left), asked.root)
}

/// Why a skill cannot be used, if it cannot.
pub(super) fn unusable(skill: &Skill) -> Option<String> {
    let name = &skill.name;
    match &skill.state {
        State::Ready => None,
        State::Untrusted => {
            Some(format!("it came with the project and the user has not trusted it (`max-team skills trust {name}`)"))
        }
        State::Changed => Some(format!("it has changed since the user trusted it (`max-team skills trust {name}`)")),
        State::Lacks(missing) => Some(format!("it needs {}", missing.join(", "))),
        State::Off => Some(format!("the user has turned it off (`max-team skills enable {name}`)")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(message: &str) -> Mentions {
        find(message, |name| ["pdf", "react-best-practices", "天气"].contains(&name))
    }

    #[test]
    fn mentioned_skills_are_found() {
        let names = |message: &str| found(message).names.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let cases: [(&str, &[&str]); 12] = [
            ("write it @skill:react-best-practices.", &["react-best-practices"]),
            ("use $pdf, please; and $pdf", &["pdf"]),
            ("查一下 $天气", &["天气"]),
            ("($pdf)", &["pdf"]),
            ("@skill:typo", &["typo"]),
            ("it costs $5 and $HOME is set, x$pdf ${pdf} $$pdf", &[]),
            ("mail me@skill:pdf", &[]),
            ("`$pdf` is a variable", &[]),
            ("```\n$pdf @skill:pdf\n```\n", &[]),
            ("a lone ` and $pdf", &["pdf"]),
            ("@skill: nothing", &[]),
            ("/usr/bin is full", &[]),
        ];
        for (message, want) in cases {
            assert_eq!(names(message), want, "{message}");
        }
        assert_eq!(found("/pdf a 'b c'\n").names, [("pdf".to_owned(), "a 'b c'".to_owned())]);
        assert!(found("@skill:all").all && found("$none").none && !found("all none").all);
    }

    #[test]
    fn each_of_several_messages_speaks_for_itself() {
        let cases: [(&[&str], bool, &[&str]); 6] = [
            (&["fix it", "/pdf src"], false, &["pdf src"]),
            (&["/pdf src", "and be quick"], false, &["pdf src"]),
            (&["/pdf a", "/pdf b"], false, &["pdf a", "pdf b"]),
            (&["$pdf", "use $pdf"], false, &["pdf "]),
            (&["$pdf", "@skill:none just say hi"], false, &["pdf "]),
            (&["hi", "$pdf @skill:none"], true, &[]),
        ];
        for (messages, none, names) in cases {
            let messages: Vec<String> = messages.iter().map(|text| (*text).to_owned()).collect();
            let found = find_in_all(&messages, |name| name == "pdf");
            let named: Vec<String> = found.names.iter().map(|(name, rest)| format!("{name} {rest}")).collect();
            assert_eq!(found.none, none, "{messages:?}");
            assert_eq!(named, names, "{messages:?}");
        }
    }

    proptest! {
        #[test]
        fn any_message_is_looked_at(message in "\\PC{0,200}") {
            prop_assert!(found(&message).names.len() <= MENTIONS_MAX);
        }
    }
}
