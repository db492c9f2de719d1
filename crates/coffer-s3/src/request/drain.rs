//! Bodies of requests that are answered without them.

use std::pin::Pin;

use bytes::Bytes;
use http::HeaderMap;
use http::header::EXPECT;
use http_body::Body;

use crate::limits::{DRAIN_MAX_BYTES, DRAIN_TIME};

/// Whether the client waits for `100 Continue` before it sends its body.
pub fn waits_to_send(headers: &HeaderMap) -> bool {
    headers
        .get(EXPECT)
        .is_some_and(|expected| expected.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// Lets go of the body of a request that is answered without it. Reads on in the background what
/// the client sends, so that it gets to see the answer. Gives whether the client still waits to
/// send it: then the answer must end the connection.
pub fn discard<B: Body<Data = Bytes> + Send + Unpin + 'static>(
    headers: &HeaderMap,
    body: B,
) -> bool {
    let waits = waits_to_send(headers);
    if !waits && !body.is_end_stream() {
        drain_in_background(body);
    }
    waits
}

pub(crate) fn drain_in_background<B: Body<Data = Bytes> + Send + Unpin + 'static>(body: B) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(drain(body));
    }
}

/// Reads what the client still sends, within bounds: many clients send all of it before they read
/// the answer, and would see a broken connection instead.
async fn drain<B: Body<Data = Bytes> + Send + Unpin>(mut inner: B) {
    let reading = async {
        let mut drained_bytes = 0;
        while drained_bytes < DRAIN_MAX_BYTES {
            let next = std::future::poll_fn(|cx| Pin::new(&mut inner).poll_frame(cx)).await;
            let Some(Ok(frame)) = next else { return };
            drained_bytes += frame.data_ref().map_or(0, |bytes| bytes.len() as u64);
        }
    };
    // Time out or not, dropping the body is all that is left to do.
    let _ = tokio::time::timeout(DRAIN_TIME, reading).await;
}
