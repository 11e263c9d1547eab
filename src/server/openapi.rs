//! `GET /openapi.json`: the interface as this service speaks it. Open to everybody: it holds no data.

use crate::wire::schema;
use axum::Router;
use axum::http::header;
use axum::routing::get;

/// Where the document is.
pub const PATH: &str = "/openapi.json";

/// The endpoints, and the document beside them; `key_headers` are those that a key may come in.
pub fn beside(router: Router, key_headers: &[String]) -> Router {
    let text = schema::document(key_headers).to_string();
    let answer = move || {
        let text = text.clone();
        async move { ([(header::CONTENT_TYPE, "application/json")], text) }
    };
    router.route(PATH, get(answer))
}
