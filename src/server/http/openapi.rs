//! `GET /openapi.json`: the interface as this service speaks it. Open to everybody: it holds no data.

use crate::server::http::routes::Endpoints;
use crate::wire::schema;
use axum::http::header;
use axum::routing::MethodFilter;

/// Where the document is.
pub const PATH: &str = "/openapi.json";

/// Adds the document to the endpoints; `key_headers` are those that a key may come in.
pub fn add_endpoint(endpoints: &mut Endpoints, key_headers: &[String]) {
    let text = schema::document(key_headers).to_string();
    let answer = move || {
        let text = text.clone();
        async move { ([(header::CONTENT_TYPE, "application/json")], text) }
    };
    endpoints.add_public(PATH, MethodFilter::GET, answer);
}
