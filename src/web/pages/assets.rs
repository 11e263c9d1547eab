//! Style and scripts: parts of this program, each under a name that changes with its content, so that browsers keep it.

use crate::domain::names::Hash;
use crate::html::{PAGES_STYLE, PLAYER_SCRIPT};
use crate::web::editor;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use std::sync::LazyLock;

const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// A file that pages load.
struct Asset {
    /// The name without the hash.
    base: &'static str,
    ending: &'static str,
    media_type: &'static str,
    content: String,
    /// The name with a part of the hash of the content.
    name: String,
}

impl Asset {
    fn new(base: &'static str, ending: &'static str, media_type: &'static str, content: String) -> Self {
        let hash = Hash::of(content.as_bytes()).to_string();
        Self { base, ending, media_type, name: format!("{base}-{}.{ending}", &hash[..16]), content }
    }
}

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    vec![
        Asset::new("scribed", "css", STYLE, format!("{PAGES_STYLE}{}", include_str!("pages.css"))),
        Asset::new("player", "js", SCRIPT, PLAYER_SCRIPT.to_owned()),
        Asset::new("editor", "css", STYLE, editor::STYLE.to_owned()),
        Asset::new("editor", "js", SCRIPT, editor::SCRIPT.to_owned()),
        Asset::new("live", "js", SCRIPT, include_str!("live.js").to_owned()),
    ]
});

/// Returns the name under which pages load a file, such as `player.js`.
pub fn asset_name(file: &str) -> &'static str {
    let (base, ending) = file.split_once('.').unwrap_or((file, ""));
    let found = ASSETS.iter().find(|asset| (asset.base, asset.ending) == (base, ending));
    found.map_or("", |asset| asset.name.as_str())
}

/// Answers a request for a file by its name with the hash.
pub fn serve_asset(name: &str) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return (StatusCode::NOT_FOUND, "no such file").into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(asset.media_type)),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
    ];
    (headers, asset.content.as_str()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_a_name_that_its_content_decides() {
        for file in ["scribed.css", "player.js", "live.js", "editor.css", "editor.js"] {
            let name = asset_name(file);
            assert!(name.len() > file.len(), "{file}");
            assert_eq!(serve_asset(name).status(), StatusCode::OK);
        }
        assert_eq!(serve_asset("scribed.css").status(), StatusCode::NOT_FOUND);
    }
}
