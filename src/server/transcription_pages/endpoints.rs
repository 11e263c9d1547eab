//! Which path leads to which page.

use crate::server::http::routes::{Endpoints, without_key};
use crate::server::transcription_pages::access::{PATH, SIGN_IN_PATH};
use crate::server::transcription_pages::list::get_list;
use crate::server::transcription_pages::recording::stream::get_recording;
use crate::server::transcription_pages::sign_in::form;
use crate::server::transcription_pages::subtitle_file::get_subtitles;
use crate::server::transcription_pages::transcription_view::get_transcription;
use axum::routing::MethodFilter;

/// Adds the pages to the endpoints.
pub fn add_endpoints(endpoints: &mut Endpoints) {
    let page = format!("{PATH}/{{id}}");
    endpoints.add_page(PATH, get_list, form::ask);
    endpoints.add_page(&page, get_transcription, form::ask);
    endpoints.add_page(&format!("{page}/recording"), get_recording, without_key);
    endpoints.add_page(&format!("{page}/subtitles/{{format}}"), get_subtitles, without_key);
    endpoints.add_public(SIGN_IN_PATH, MethodFilter::GET, form::get_form);
    endpoints.add_public(SIGN_IN_PATH, MethodFilter::POST, form::sign_in);
    endpoints.add_public(&format!("{PATH}/sign-out"), MethodFilter::POST, form::sign_out);
}
