//! Answers that are lines of JSON, written as what they tell comes to be.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt};
use http::header::CONTENT_TYPE;
use serde::Serialize;

/// A line for each event. What makes the events is dropped with the answer, and so ends when the
/// client hangs up.
pub(crate) fn json_lines<T: Serialize>(events: impl Stream<Item = T> + Send + 'static) -> Response {
    let lines = events.map(|event| {
        serde_json::to_vec(&event).map(|mut line| {
            line.push(b'\n');
            line
        })
    });
    let headers = [(CONTENT_TYPE, "application/x-ndjson")];
    (headers, Body::from_stream(lines)).into_response()
}
