//! `geocode`: where a place is, by its name.
//!
//! The service is Open-Meteo's, which needs no key, or one of the user's that speaks the same way; the policy judges
//! its host. A name that is not known as a whole (`北京通州`; `Springfield, Illinois`) is taken apart: its parts are
//! looked for, and places that lie in the rest of the name come first.

use max_team_core::limits::PLACES_MAX;
use max_team_core::policy::{Action, ActionKind};
use max_team_core::text::is_chinese;
use reqwest::Url;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{AddressGuard, fetch, host};
use crate::json_get;
use crate::text::{clip, visible};
use crate::tool::{Output, ToolContext, ToolError};
use crate::typed::RemoteTyped;

/// The service, unless the user has another.
const SERVICE: &str = "https://geocoding-api.open-meteo.com";
const PATH: &str = "v1/search";
/// Places that come by default.
const PLACES_DEFAULT: u32 = 5;
/// Bytes of a name.
const NAME_BYTES_MAX: usize = 200;
/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Bytes of what the service says when it refuses, and of one name that it gives.
const WORDS_BYTES_MAX: usize = 200;
/// Questions to the service in one call.
const ASKS_MAX: usize = 5;
/// Where parts of a Chinese name end.
const UNITS: [char; 4] = ['省', '市', '区', '县'];

/// Find where a place is: its latitude and longitude, with country, region, time zone and population, so that the right
/// one of several can be chosen. Give the name in any language, like `Berlin`, `北京` or `Springfield, Illinois`; if the
/// whole name is not known, its parts are looked for. At most 10 places come, the likeliest first.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Geocode {
    /// The place's name, or its postal code.
    name: String,
    /// How many places to give. Default: 5.
    #[schemars(range(min = 1, max = 10))]
    count: Option<u32>,
    /// The language of the names that come, like `en` or `zh`. Default: Chinese for a name in Chinese, else English.
    language: Option<String>,
}

pub(crate) fn geocode() -> RemoteTyped<Geocode> {
    RemoteTyped::reading(
        "geocode",
        action,
        |_, intent| Some(intent.target.clone()),
        |cx, args, intent| Box::pin(call(cx, args, intent)),
    )
}

fn action(cx: &ToolContext, args: &Geocode) -> Result<Action, ToolError> {
    let url = GeocodeRequest::new(cx, args)?.url(args.name.trim());
    Ok(Action { kind: ActionKind::Fetch, preview: format!("GET {url}"), ..Action::read(host(&url)) })
}

async fn call(cx: &ToolContext, args: Geocode, intent: &Action) -> Result<Output, ToolError> {
    let ask = GeocodeRequest::new(cx, &args)?;
    if host(&ask.service) != intent.target {
        let words = format!("the host of `{}` is not what was judged (`{}`)", ask.service, intent.target);
        return Err(ToolError::fatal(words));
    }
    let whole = args.name.trim();
    let found = ask.places(cx, whole).await?;
    if !found.is_empty() {
        return Ok(Output::text(lines(&found)));
    }
    let shown = visible(whole);
    for NamePart { name, rest } in pieces(whole).into_iter().take(ASKS_MAX - 1) {
        let mut found = ask.places(cx, &name).await?;
        // The order is the service's own otherwise.
        found.sort_by_key(|place| !rest.iter().any(|rest| place.lies_in(rest)));
        if !found.is_empty() {
            let head = format!("[nothing is called `{shown}`; these are for `{}`]\n", visible(&name));
            return Ok(Output::text(head + &lines(&found)));
        }
    }
    Ok(Output::text(format!("[no place is called `{shown}`; try another spelling, or a larger place near it]")))
}

/// How the service is asked.
struct GeocodeRequest {
    service: Url,
    guard: AddressGuard,
    count: u32,
    language: String,
}

impl GeocodeRequest {
    fn new(cx: &ToolContext, args: &Geocode) -> Result<Self, ToolError> {
        let name = args.name.trim();
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(ToolError::correctable(format!(
                "`name` is the name of a place, of 1 to {NAME_BYTES_MAX} bytes"
            )));
        }
        let usual = if name.chars().any(is_chinese) { "zh" } else { "en" };
        let language = args.language.as_deref().unwrap_or(usual).to_ascii_lowercase();
        if !(2..=3).contains(&language.len()) || !language.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return Err(ToolError::correctable("`language` is a code of two or three letters, like `en` or `zh`"));
        }
        let own = &cx.services.geocode_url;
        let guard = if own.is_some() { AddressGuard::Service } else { AddressGuard::Public };
        let service = own.clone().or_else(|| Some(SERVICE.to_owned()));
        let service = json_get::base(&service, "The geocoding service", "tools.geocode_url")?;
        let count = args.count.unwrap_or(PLACES_DEFAULT).min(PLACES_MAX);
        Ok(Self { service, guard, count, language })
    }

    fn url(&self, name: &str) -> Url {
        let count = self.count.to_string();
        let fields = [("name", name), ("count", &count), ("language", &self.language), ("format", "json")];
        json_get::address(&self.service, PATH, &fields)
    }

    /// Asks for one name.
    async fn places(&self, cx: &ToolContext, name: &str) -> Result<Vec<GeocodePlace>, ToolError> {
        cx.progress.say(|| format!("looking for {name}"));
        let reply = fetch(cx, &self.url(name), self.guard, ANSWER_BYTES_MAX).await?;
        let host = self.service.host_str().unwrap_or_default();
        let answer: Result<GeocodeResponse, _> = serde_json::from_slice(&reply.body);
        match (reply.status, answer) {
            (200, Ok(GeocodeResponse { results, .. })) => Ok(results.into_iter().take(self.count as usize).collect()),
            (200, Err(err)) => Err(ToolError::correctable(format!("`{host}` answers with something else: {err}"))),
            (status, answer) => {
                let reason = answer.ok().and_then(|answer| answer.reason);
                let words = reason.unwrap_or_else(|| String::from_utf8_lossy(&reply.body).trim().to_owned());
                let words = visible(&clip(&words, WORDS_BYTES_MAX));
                Err(ToolError::correctable(format!("`{host}` says {status}: {words}")))
            }
        }
    }
}

/// What the service says; without `results` it knows no such place.
#[derive(Debug, Deserialize)]
struct GeocodeResponse {
    #[serde(default)]
    results: Vec<GeocodePlace>,
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct GeocodePlace {
    name: String,
    latitude: f64,
    longitude: f64,
    country: Option<String>,
    admin1: Option<String>,
    admin2: Option<String>,
    timezone: Option<String>,
    population: Option<u64>,
}

impl GeocodePlace {
    /// What it is part of, the nearest first.
    fn regions(&self) -> impl Iterator<Item = &str> {
        [&self.admin2, &self.admin1, &self.country].into_iter().filter_map(|region| region.as_deref())
    }

    fn lies_in(&self, region: &str) -> bool {
        let wanted = region.to_lowercase();
        self.regions().map(str::to_lowercase).any(|own| own.contains(&wanted) || wanted.contains(&own))
    }

    fn line(&self) -> String {
        let mut regions: Vec<&str> = self.regions().filter(|region| *region != self.name).collect();
        regions.dedup();
        let within = if regions.is_empty() { String::new() } else { format!(" ({})", regions.join(", ")) };
        let mut line = format!("{}{within}: latitude {}, longitude {}", self.name, self.latitude, self.longitude);
        if let Some(zone) = &self.timezone {
            line.push_str(&format!(", time zone {zone}"));
        }
        if let Some(people) = self.population {
            line.push_str(&format!(", population {people}"));
        }
        visible(&clip(&line, 2 * WORDS_BYTES_MAX))
    }
}

fn lines(places: &[GeocodePlace]) -> String {
    places.iter().enumerate().map(|(at, place)| format!("{}. {}\n", at + 1, place.line())).collect()
}

/// A part of a name, and what the rest says about where that is.
#[derive(Debug, PartialEq, Eq)]
struct NamePart {
    name: String,
    rest: Vec<String>,
}

/// What to look for instead of a whole name, the narrowest first.
fn pieces(name: &str) -> Vec<NamePart> {
    let chinese = name.chars().any(is_chinese);
    let mut parts: Vec<String> = split(name, chinese).into_iter().filter(|part| part.chars().count() > 1).collect();
    // In Chinese the narrower stands behind the wider.
    if chinese {
        parts.reverse();
    }
    if parts.len() > 1 {
        let rest = |at: usize| parts.iter().skip(at + 1).cloned().collect();
        return parts.iter().enumerate().map(|(at, part)| NamePart { name: part.clone(), rest: rest(at) }).collect();
    }
    if !chinese { Vec::new() } else { cuts(name) }
}

/// The parts of a name that its writer has set apart.
fn split(name: &str, chinese: bool) -> Vec<String> {
    let mut parts = vec![String::new()];
    for letter in name.chars() {
        let is_joint = matches!(letter, ',' | '，' | ';' | '；' | '/' | '、' | '·');
        if is_joint || (chinese && letter.is_whitespace()) {
            parts.push(String::new());
            continue;
        }
        if let Some(last) = parts.last_mut() {
            last.push(letter);
        }
        if chinese && UNITS.contains(&letter) {
            parts.push(String::new());
        }
    }
    parts.into_iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// A Chinese name without anything that sets its parts apart: most of them have two letters, some have three.
fn cuts(name: &str) -> Vec<NamePart> {
    let letters: Vec<char> = name.chars().filter(|letter| letter.is_alphanumeric()).collect();
    let cut = |at: usize| letters.split_at_checked(at).filter(|(_, tail)| tail.len() > 1);
    let halves: Vec<(String, String)> =
        [2, 3].into_iter().filter_map(cut).map(|(head, tail)| (head.iter().collect(), tail.iter().collect())).collect();
    let tails = halves.iter().map(|(head, tail)| NamePart { name: tail.clone(), rest: vec![head.clone()] });
    let heads = halves.iter().map(|(head, _)| NamePart { name: head.clone(), rest: Vec::new() });
    tails.chain(heads).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart_where_people_would() {
        let table: [(&str, &[(&str, &str)]); 12] = [
            ("Berlin", &[]),
            ("New York", &[]),
            ("北京", &[]),
            ("石家庄", &[]),
            ("  区县", &[]),
            ("Springfield, Illinois", &[("Springfield", "Illinois"), ("Illinois", "")]),
            ("Paris / Texas; USA", &[("Paris", "Texas USA"), ("Texas", "USA"), ("USA", "")]),
            ("北京通州", &[("通州", "北京"), ("北京", "")]),
            ("北京 通州", &[("通州", "北京"), ("北京", "")]),
            ("北京市通州区", &[("通州区", "北京市"), ("北京市", "")]),
            ("江苏省南通市通州区", &[("通州区", "南通市 江苏省"), ("南通市", "江苏省"), ("江苏省", "")]),
            ("石家庄正定", &[("庄正定", "石家"), ("正定", "石家庄"), ("石家", ""), ("石家庄", "")]),
        ];
        for (name, want) in table {
            let got: Vec<(String, String)> =
                pieces(name).into_iter().map(|piece| (piece.name, piece.rest.join(" "))).collect();
            let want: Vec<(String, String)> =
                want.iter().map(|(name, rest)| ((*name).to_owned(), (*rest).to_owned())).collect();
            assert_eq!(got, want, "{name}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_name_breaks_it(name in "[a-z ,;/北京市区县省、·，𠀀]{0,40}") {
            for piece in pieces(&name) {
                assert!(!piece.name.trim().is_empty() && piece.name.len() <= name.len());
            }
        }
    }
}
