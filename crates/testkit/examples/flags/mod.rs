//! `--name value` pairs, for the two examples.
//!
//! They live in every bench's hands but in no user's, so a dozen lines do instead of a parser crate. An unknown flag is
//! an error: a bench with a misspelt flag would measure the wrong thing.

use std::str::FromStr;

#[derive(Debug)]
pub(crate) struct Flags(Vec<(String, String)>);

impl Flags {
    pub(crate) fn parse(args: &[String], known: &[&str]) -> Result<Flags, String> {
        let mut pairs = Vec::new();
        for pair in args.chunks(2) {
            match pair {
                [name, value] if known.contains(&name.as_str()) => pairs.push((name.clone(), value.clone())),
                [name, ..] => return Err(format!("`{name}` is unknown or has no value; flags: {}", known.join(" "))),
                [] => {}
            }
        }
        Ok(Flags(pairs))
    }

    pub(crate) fn get<T: FromStr>(&self, name: &str, default: T) -> Result<T, String> {
        match self.0.iter().find(|(key, _)| key == name) {
            Some((_, value)) => value.parse().map_err(|_| format!("`{value}` is no value for {name}")),
            None => Ok(default),
        }
    }
}
