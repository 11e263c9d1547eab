//! Serves `GET /openapi.json`: the interface as this service implements it. It needs no key, because it holds no data.

use crate::server::http::routes::Endpoints;
use crate::wire::schema;
use axum::http::header;
use axum::routing::MethodFilter;

/// The path of the document.
pub const PATH: &str = "/openapi.json";

/// Adds the document to the endpoints; `key_headers` are the headers that may carry a key.
pub fn add_endpoint(endpoints: &mut Endpoints, key_headers: &[String]) {
    let text = schema::document(key_headers).to_string();
    let answer = move || {
        let text = text.clone();
        async move { ([(header::CONTENT_TYPE, "application/json")], text) }
    };
    endpoints.add_public(PATH, MethodFilter::GET, answer);
}
