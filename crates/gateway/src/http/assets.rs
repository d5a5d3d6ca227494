//! The pages: files of `web/dist`, built beforehand and part of the program.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use rust_embed::{EmbeddedFile, RustEmbed};

use super::error::ApiError;

/// Paths that are never pages.
const NO_PAGES: [&str; 3] = ["/api/", "/v1/", "/metrics"];

#[derive(RustEmbed)]
#[folder = "../../web/dist"]
struct Files;

/// Tells the tests whether `web/dist` is up to date; no part of the pages.
const SOURCE_HASH: &str = "SOURCE_SHA256";

fn file(name: &str) -> Option<EmbeddedFile> {
    if name == SOURCE_HASH { None } else { Files::get(name) }
}

/// A file of the pages; the page itself for every other path, so that addresses of screens can be opened.
pub(crate) async fn page(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let path = uri.path();
    if NO_PAGES.iter().any(|prefix| path.starts_with(prefix)) {
        return ApiError::not_found(format!("there is no `{path}`")).into_response();
    }
    if method != Method::GET && method != Method::HEAD {
        return wrong_method().await;
    }
    let name = path.trim_start_matches('/');
    let name = if name.is_empty() { "index.html" } else { name };
    // A path with an ending is a file; without one it is a screen.
    let name = if file(name).is_none() && !name.contains('.') { "index.html" } else { name };
    let Some(file) = file(name) else {
        return ApiError::not_found(format!("there is no `{path}`")).into_response();
    };
    send(name, file, &headers)
}

pub(crate) async fn wrong_method() -> Response {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "bad_request", "this route has other methods").into_response()
}

fn send(name: &str, file: EmbeddedFile, headers: &HeaderMap) -> Response {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
    let hash: String = file.metadata.sha256_hash().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{hash}\"");
    let takes_gzip = text(header::ACCEPT_ENCODING).contains("gzip");
    let packed = Some(format!("{name}.gz")).filter(|_| takes_gzip).and_then(|packed| self::file(&packed));
    let is_known = text(header::IF_NONE_MATCH).split(',').any(|known| known.trim().trim_start_matches("W/") == tag);
    let mut response = match (is_known, packed) {
        (true, _) => StatusCode::NOT_MODIFIED.into_response(),
        (false, Some(packed)) => ([(header::CONTENT_ENCODING, "gzip")], packed.data).into_response(),
        (false, None) => file.data.into_response(),
    };
    let all = [
        (header::CONTENT_TYPE, kind(name).to_owned()),
        (header::ETAG, tag),
        (header::CACHE_CONTROL, "no-cache".to_owned()),
        (header::VARY, "Accept-Encoding".to_owned()),
    ];
    for (name, value) in all {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "json" | "webmanifest" | "map" => "application/json",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use max_team_core::hash::Hash;

    use super::*;

    fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
    }

    #[test]
    fn the_pages_are_built_from_the_sources_beside_them() {
        let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
        let mut sources = files(&web.join("src"));
        sources.extend(["package-lock.json", "vite.config.ts"].map(|name| web.join(name)));
        let name = |path: &Path| path.strip_prefix(&web).unwrap().to_str().unwrap().replace('\\', "/");
        let mut sources: Vec<_> = sources.iter().map(|path| (name(path), path)).collect();
        sources.sort();
        let fed: Vec<u8> = sources
            .into_iter()
            .flat_map(|(name, path)| [name.as_bytes(), b"\0", &std::fs::read(path).unwrap()].concat())
            .collect();
        let stored = Files::get(SOURCE_HASH).unwrap();
        let stored = std::str::from_utf8(&stored.data).unwrap().trim();
        assert_eq!(
            stored,
            Hash::of(fed).to_string(),
            "`web/dist` is older than its sources: run `npm run build` in `web`"
        );
    }

    #[tokio::test]
    async fn the_hash_of_the_sources_is_not_sent() {
        let answer = page(Method::GET, Uri::from_static("/SOURCE_SHA256"), HeaderMap::new()).await;
        assert_eq!(answer.headers()[header::CONTENT_TYPE], "text/html; charset=utf-8");
    }
}
