//! Makes a method of `Lang` from each sentence of `i18n/en.toml` and `i18n/zh.toml`.
//!
//! A line is `key = "sentence"`. `{name}` is a parameter; the parameters come in the order in which the English sentence
//! names them, and the Chinese one uses the same. `{count?file|files}` is `file` if the parameter `count` is 1.
//! `about.NAME = "sentence"` is what `Lang::about` finds for a name, in `ABOUT`.
#![expect(clippy::panic, reason = "a sentence that is missing or malformed ends the build and names its key")]
#![expect(clippy::disallowed_methods, reason = "cargo names the output folder in the environment")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

/// A sentence as the arguments of `format!`, and the parameters it uses.
struct Sentence {
    format: String,
    choices: Vec<(String, String, String)>,
    parameters: Vec<String>,
}

fn main() {
    let [english, chinese] = ["en", "zh"].map(|lang| read(&format!("i18n/{lang}.toml")));
    if let Some(key) = chinese.keys().find(|key| !english.contains_key(*key)) {
        panic!("`{key}` is in i18n/zh.toml and not in i18n/en.toml");
    }
    let mut code = String::from("impl Lang {\n");
    let mut about = String::from("const ABOUT: &[(&str, &str, &str)] = &[\n");
    for (key, english) in &english {
        let Some(chinese) = chinese.get(key) else { panic!("`{key}` is in i18n/en.toml and not in i18n/zh.toml") };
        match key.strip_prefix("about.") {
            Some(name) => about.push_str(&format!("    (\"{name}\", \"{english}\", \"{chinese}\"),\n")),
            None => code.push_str(&method(key, &parse(key, english), &parse(key, chinese))),
        }
    }
    code.push_str(&format!("}}\n{about}];\n"));
    let out = env::var("OUT_DIR").unwrap_or_default();
    if let Err(error) = fs::write(Path::new(&out).join("phrases.rs"), code) {
        panic!("`{out}/phrases.rs` cannot be written: {error}");
    }
}

/// The sentences of a file by key, escaped as they are in the file, which is how Rust escapes them, too.
fn read(path: &str) -> BTreeMap<String, String> {
    println!("cargo::rerun-if-changed={path}");
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("`{path}` cannot be read: {error}"));
    let mut sentences = BTreeMap::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let sentence = |text: &str| text.strip_prefix('"')?.strip_suffix('"').map(str::to_owned);
        let parts = line.split_once(" = ").and_then(|(key, text)| Some((key, sentence(text)?)));
        let Some((key, text)) = parts else { panic!("{path}:{}: not `key = \"sentence\"`", at + 1) };
        if sentences.insert(key.to_owned(), text).is_some() {
            panic!("{path}:{}: `{key}` is there twice", at + 1);
        }
    }
    sentences
}

fn parse(key: &str, text: &str) -> Sentence {
    let (mut format, mut choices, mut parameters) = (String::new(), Vec::new(), Vec::<String>::new());
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        format.push_str(&rest[..start]);
        rest = &rest[start + 1..];
        if let Some(after) = rest.strip_prefix('{') {
            format.push_str("{{");
            rest = after;
            continue;
        }
        let Some((inside, after)) = rest.split_once('}') else { panic!("`{key}`: `{{` without `}}`") };
        let (name, forms) = inside.split_once('?').map_or((inside, None), |(name, forms)| (name, Some(forms)));
        if !parameters.iter().any(|known| known == name) {
            parameters.push(name.to_owned());
        }
        match forms.map(|forms| forms.split_once('|')) {
            None => write!(format, "{{{name}}}").unwrap_or_default(),
            Some(Some((one, many))) => {
                write!(format, "{{choice_{}}}", choices.len()).unwrap_or_default();
                choices.push((name.to_owned(), one.to_owned(), many.to_owned()));
            }
            Some(None) => panic!("`{key}`: `{{{inside}}}` names one form only"),
        }
        rest = after;
    }
    format.push_str(rest);
    Sentence { format, choices, parameters }
}

fn method(key: &str, english: &Sentence, chinese: &Sentence) -> String {
    if english.parameters.iter().any(|name| !chinese.parameters.contains(name))
        || chinese.parameters.iter().any(|name| !english.parameters.contains(name))
    {
        panic!("`{key}` has other parameters in English than in Chinese");
    }
    if english.parameters.is_empty() {
        let [english, chinese] =
            [english, chinese].map(|sentence| sentence.format.replace("{{", "{").replace("}}", "}"));
        return format!(
            "    pub fn {key}(self) -> &'static str {{\n        match self {{ Self::En => \"{english}\", \
             Self::Zh => \"{chinese}\" }}\n    }}\n"
        );
    }
    let list: Vec<String> = english.parameters.iter().map(|name| format!("{name}: impl std::fmt::Display")).collect();
    let [english, chinese] = [english, chinese].map(|sentence| {
        let choices = sentence.choices.iter().enumerate().map(|(at, (name, one, many))| {
            format!(", choice_{at} = if {name}.to_string() == \"1\" {{ \"{one}\" }} else {{ \"{many}\" }}")
        });
        format!("format!(\"{}\"{})", sentence.format, choices.collect::<String>())
    });
    format!(
        "    pub fn {key}(self, {}) -> String {{\n        match self {{ Self::En => {english}, Self::Zh => {chinese} }}\n    }}\n",
        list.join(", ")
    )
}
