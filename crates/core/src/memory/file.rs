//! Memories as files for people and other programs: SOUL.md, USER.md, MEMORY.md, and JSON.
//!
//! SOUL.md is a personality as a whole. In the others every item is a fact: an item `- key: value` keeps its key below
//! its section, and any other item gets a key that follows from its text, so that importing a file twice makes no
//! second fact. Headings only give the section.

use serde_json::{Map, Value};

use super::{Board, Fact, Key, Section};
use crate::hash::Hash;

/// Characters of a key that follows from an item's text.
const NAME_LETTERS: usize = 8;

/// The kind of a memory file, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryFile {
    /// How the lead speaks.
    Soul,
    /// Who the user is.
    User,
    /// Facts of the other sections.
    Memory,
    /// Sections as one JSON object.
    Json,
}

impl MemoryFile {
    /// The three files that are exported, with their names.
    pub const WRITTEN: [(MemoryFile, &str); 3] =
        [(MemoryFile::Soul, "SOUL.md"), (MemoryFile::User, "USER.md"), (MemoryFile::Memory, "MEMORY.md")];

    /// The kind of a file with this name; `None` if the name is unknown.
    pub fn from_file_name(name: &str) -> Option<Self> {
        let name = name.to_lowercase();
        match (name.as_str(), name.rsplit_once('.')) {
            ("soul.md" | "identity.md", _) => Some(Self::Soul),
            ("user.md", _) => Some(Self::User),
            (_, Some((_, "md"))) => Some(Self::Memory),
            (_, Some((_, "json"))) => Some(Self::Json),
            _ => None,
        }
    }

    /// The sections that are written into it.
    fn holds(self, section: Section) -> bool {
        match self {
            Self::Soul => section == Section::Personality,
            Self::User => matches!(section, Section::UserProfile | Section::Preferences),
            Self::Memory => !section.is_personal(),
            Self::Json => true,
        }
    }

    /// The facts in a text, in its order, or why it could not be read.
    pub fn read(self, text: &str) -> Result<Vec<(Key, Value)>, String> {
        let text = text.trim_start_matches('\u{feff}');
        match self {
            Self::Soul => {
                let words = without_front_matter(text).trim();
                let fact = (Key::of(Section::Personality), Value::from(words));
                Ok(if words.is_empty() { Vec::new() } else { vec![fact] })
            }
            Self::Json => read_json(text),
            Self::User => Ok(read_items(text, Section::UserProfile)),
            Self::Memory => Ok(read_items(text, Section::Notes)),
        }
    }

    /// The text of the board's facts that belong into this file; empty if there are none.
    pub fn write(self, board: &Board) -> String {
        let facts: Vec<&Fact> = board.facts().filter(|fact| self.holds(fact.key.section())).collect();
        if facts.is_empty() {
            return String::new();
        }
        match self {
            Self::Soul => facts.iter().map(|fact| format!("{}\n", fact.value_text().trim_end())).collect(),
            Self::Json => {
                let section =
                    |(name, section): (&str, Section)| Some((name.to_owned(), board.read(&Key::of(section))?));
                let tree: Map<String, Value> = Section::NAMES.into_iter().filter_map(section).collect();
                format!("{:#}\n", Value::Object(tree))
            }
            Self::User | Self::Memory => write_items(&facts),
        }
    }
}

fn write_items(facts: &[&Fact]) -> String {
    let mut text = String::new();
    let mut last = None;
    for fact in facts {
        let section = fact.key.section();
        if last != Some(section) {
            text.push_str(if text.is_empty() { "" } else { "\n" });
            text.push_str(&format!("## {}\n\n", section.name()));
            last = Some(section);
        }
        let name = fact.key.below(&Key::of(section)).unwrap_or_default();
        // A value that could be misread is written as JSON.
        let plain = fact.value.as_str().filter(|words| {
            !words.contains(['\n', '\r']) && words.trim() == *words && serde_json::from_str::<Value>(words).is_err()
        });
        let value = plain.map_or_else(|| fact.value.to_string(), str::to_owned);
        text.push_str(&format!("- {name}: {value}\n"));
    }
    text
}

fn read_json(text: &str) -> Result<Vec<(Key, Value)>, String> {
    let tree: Map<String, Value> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let read = |(name, value): (String, Value)| -> Result<Option<(Key, Value)>, String> {
        let key: Key = name.parse().map_err(|error: super::KeyError| error.to_string())?;
        let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        Ok((!is_empty).then_some((key, value)))
    };
    tree.into_iter().filter_map(|member| read(member).transpose()).collect()
}

fn read_items(text: &str, usual: Section) -> Vec<(Key, Value)> {
    let mut section = usual;
    let mut facts: Vec<(Key, Value)> = Vec::new();
    for item in items(without_front_matter(text)) {
        match item {
            FileItem::Heading(words) => {
                let known = Section::NAMES.iter().find(|(name, _)| words.trim().eq_ignore_ascii_case(name));
                section = known.map_or(usual, |(_, section)| *section);
            }
            FileItem::Fact(words) => facts.extend(fact(section, &words)),
        }
    }
    facts
}

/// A fact from `key: value`, or from text alone with a key that follows from the text.
fn fact(section: Section, words: &str) -> Option<(Key, Value)> {
    let above = Key::of(section);
    let pair = words.split_once(':').or_else(|| words.split_once('：'));
    let named = pair.and_then(|(name, value)| {
        let key: Key = format!("{above}.{}", name.trim()).parse().ok()?;
        let value = value.trim();
        (!value.is_empty()).then(|| (key, serde_json::from_str(value).unwrap_or_else(|_| Value::from(value))))
    });
    named.or_else(|| {
        let name: String = Hash::of(words).to_string().chars().take(NAME_LETTERS).collect();
        Some((above.member(&format!("m-{name}")).ok()?, Value::from(words)))
    })
}

enum FileItem {
    Heading(String),
    Fact(String),
}

/// Headings, list items and paragraphs; what is indented below an item belongs to it.
fn items(text: &str) -> Vec<FileItem> {
    let mut items: Vec<FileItem> = Vec::new();
    let (mut is_open, mut is_comment) = (false, false);
    for line in text.lines() {
        let bare = line.trim();
        if is_comment || bare.starts_with("<!--") {
            is_comment = !bare.ends_with("-->");
            continue;
        }
        if let Some(heading) = bare.strip_prefix('#') {
            items.push(FileItem::Heading(heading.trim_start_matches('#').trim().to_owned()));
            is_open = false;
        } else if bare.is_empty() || bare.starts_with("---") || bare.starts_with("```") {
            is_open = false;
        } else if let Some(words) = ["- ", "* ", "+ "].iter().find_map(|mark| bare.strip_prefix(mark)) {
            items.push(FileItem::Fact(words.trim().to_owned()));
            is_open = true;
        } else if let (true, Some(FileItem::Fact(words))) = (is_open, items.last_mut()) {
            words.push(' ');
            words.push_str(bare);
        } else {
            items.push(FileItem::Fact(bare.to_owned()));
            is_open = true;
        }
    }
    items
}

fn without_front_matter(text: &str) -> &str {
    let Some(rest) = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n")) else { return text };
    let end = rest.match_indices("\n---").find(|(at, mark)| {
        rest.get(at + mark.len()..).is_some_and(|after| after.is_empty() || after.starts_with(['\n', '\r']))
    });
    end.and_then(|(at, mark)| rest.get(at + mark.len()..)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::memory::{Source, Writer, set};

    fn board(facts: &[(Key, Value)]) -> Board {
        let mut board = Board::default();
        for (key, value) in facts {
            let user = Writer::User("ada".into());
            let sets = set(&board, &user, key, value, &Source::default(), true).unwrap();
            sets.iter().for_each(|set| board.set(set, 1));
        }
        board
    }

    #[test]
    fn files_of_other_programs_are_read() {
        let user = "\u{feff}# USER\n\n## 画像\n- 位置：北京通州\n* name: Ada\n\n## AI观察到\n- 喜欢户外\n  和茶\n<!-- no -->\n";
        let read = MemoryFile::User.read(user).unwrap();
        let got: Vec<_> = read.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
        let name = format!("user_profile.m-{}", &Hash::of("喜欢户外 和茶").to_string()[..8]);
        let want = [
            ("user_profile.位置", json!("北京通州")),
            ("user_profile.name", json!("Ada")),
            (&name, json!("喜欢户外 和茶")),
        ];
        assert_eq!(got, want);
        let soul = MemoryFile::Soul.read("---\nname: x\n---\n\n你是个幽默风趣的北京大妞\n\n说话带点贫\n").unwrap();
        assert_eq!(soul, [(Key::of(Section::Personality), json!("你是个幽默风趣的北京大妞\n\n说话带点贫"))]);
        let memory = MemoryFile::Memory
            .read("# Memory\n\nThe tests are slow.\nVery.\n\n- port: 8080\n- see https://a.b\n")
            .unwrap();
        assert_eq!(memory.len(), 3);
        assert_eq!(memory[1], ("notes.port".parse().unwrap(), json!(8080)));
        assert_eq!(memory[0].1, json!("The tests are slow. Very."));
        let seed = r#"{"personality": "x", "user_profile": {"unit": "C", "mood": null}, "agent_errors": {}}"#;
        assert_eq!(MemoryFile::Json.read(seed).unwrap().len(), 2);
        assert!(MemoryFile::Json.read(r#"{"else": 1}"#).is_err() && MemoryFile::Json.read("[]").is_err());
        for (name, want) in [
            ("SOUL.md", Some(MemoryFile::Soul)),
            ("user.md", Some(MemoryFile::User)),
            ("MEMORY.md", Some(MemoryFile::Memory)),
            ("2026-05-11.md", Some(MemoryFile::Memory)),
            ("memory.json", Some(MemoryFile::Json)),
            ("memory.db", None),
        ] {
            assert_eq!(MemoryFile::from_file_name(name), want, "{name}");
        }
    }

    proptest! {
        /// What was written is read back, whatever it was.
        #[test]
        fn written_files_are_read_back(
            texts in prop::collection::vec("\\PC{1,30}|[0-9]{1,3}|true|a\nb", 1..6), number in any::<i32>(),
        ) {
            let mut facts: Vec<(Key, Value)> = vec![("user_profile.n".parse().unwrap(), json!(number))];
            for (at, text) in texts.iter().enumerate() {
                let section = ["user_profile", "preferences", "notes", "agent_errors"][at % 4];
                facts.push((format!("{section}.k{at}").parse().unwrap(), json!(text)));
                facts.push((format!("{section}.list.k{at}").parse().unwrap(), json!([text, at])));
            }
            let board = board(&facts);
            let read = |files: &[MemoryFile]| -> Board {
                let read = files.iter().flat_map(|file| file.read(&file.write(&board)).unwrap());
                self::board(&read.collect::<Vec<_>>())
            };
            prop_assert_eq!(&read(&[MemoryFile::User, MemoryFile::Memory]), &board);
            prop_assert_eq!(&read(&[MemoryFile::Json]), &board);
        }

        #[test]
        fn any_text_is_read(text in "(?s).{0,200}") {
            for file in [MemoryFile::Soul, MemoryFile::User, MemoryFile::Memory] {
                prop_assert!(file.read(&text).is_ok());
            }
        }
    }
}
