//! Requests of this program's own commands on other machines (`--server`): the same that go through the daemon's socket,
//! from people whose role allows them. They change with each release; other programs use the endpoints of `routes`.

use super::answer::ApiProblem;
use super::call::{ApiAnswer, Call, json_of};
use crate::control::transport::protocol::{AcceptQuery, ControlRequest};
use crate::control::transport::server::refusal_status;
use axum::Json;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;

/// Carries out a request. A refusal of the queue is answered as through the socket; one of the API as a problem.
pub async fn carry_out(call: Call) -> ApiAnswer {
    let request = match call.control_request().await? {
        ControlRequest::CopyRows { .. } => {
            let words = "a backup is made on the machine of the queue: `scribed state backup`";
            return Err(ApiProblem::new(StatusCode::FORBIDDEN, words));
        }
        // Who accepts is who was let in, whatever the other machine says.
        ControlRequest::Accept(query) => ControlRequest::Accept(AcceptQuery { by: call.caller.name.clone(), ..query }),
        request => request,
    };
    match call.try_ask(request).await? {
        Ok(answer) => json_of(answer),
        Err(refusal) => Ok((refusal_status(&refusal), Json(refusal)).into_response()),
    }
}
