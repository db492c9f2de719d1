//! The two names of a request that its answer bears. They are random: a count or a time in them
//! would tell every client how many requests the server answers, and since when it runs.

use std::cell::RefCell;

use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::HeaderValue;

use crate::limits::RANDOM_BUFFER_BYTES;

/// Random bytes that a request needs for its names.
const DRAWN_BYTES: usize = 32;

/// The names of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestIds {
    request: u64,
    host: [u8; DRAWN_BYTES - 8],
}

/// Random bytes that were made and not yet used: many are made at once, for that costs little more
/// than a few.
struct Drawer {
    bytes: [u8; RANDOM_BUFFER_BYTES],
    used: usize,
}

thread_local! {
    /// A thread's own, so that no request waits for another.
    static DRAWER: RefCell<Drawer> = const {
        RefCell::new(Drawer {
            bytes: [0; RANDOM_BUFFER_BYTES],
            used: RANDOM_BUFFER_BYTES,
        })
    };
}

impl RequestIds {
    /// Names that no other request has, as far as chance goes.
    pub(crate) fn draw() -> Self {
        let drawn = DRAWER.with_borrow_mut(Drawer::draw);
        let (request, host) = drawn.split_at(8);
        Self {
            request: u64::from_be_bytes(request.try_into().unwrap_or_default()),
            host: host.try_into().unwrap_or_default(),
        }
    }

    /// `x-amz-request-id`: 16 hexadecimal digits.
    pub(crate) fn request_id(&self) -> String {
        text_of(&self.request_digits())
    }

    /// `x-amz-id-2`: S3's second name for the request, 32 characters.
    pub(crate) fn host_id(&self) -> String {
        text_of(&self.host_digits())
    }

    /// Both, as an answer's headers have them.
    pub(crate) fn header_values(&self) -> Option<[HeaderValue; 2]> {
        let request = HeaderValue::from_bytes(&self.request_digits()).ok()?;
        let host = HeaderValue::from_bytes(&self.host_digits()).ok()?;
        Some([request, host])
    }

    fn request_digits(&self) -> [u8; 16] {
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        std::array::from_fn(|place| DIGITS[(self.request >> (60 - 4 * place) & 15) as usize])
    }

    fn host_digits(&self) -> [u8; 32] {
        let mut digits = [0; 32];
        // Four digits for three bytes: there are 24 of them.
        let _ = BASE64.encode_slice(self.host, &mut digits);
        digits
    }
}

fn text_of(digits: &[u8]) -> String {
    String::from_utf8_lossy(digits).into_owned()
}

impl Drawer {
    fn draw(&mut self) -> [u8; DRAWN_BYTES] {
        if self.used + DRAWN_BYTES > RANDOM_BUFFER_BYTES {
            // The library's generator does not fail once it runs; were it to, ids would repeat.
            let _ = rand::fill(&mut self.bytes);
            self.used = 0;
        }
        let mut drawn = [0; DRAWN_BYTES];
        drawn.copy_from_slice(&self.bytes[self.used..self.used + DRAWN_BYTES]);
        self.used += DRAWN_BYTES;
        drawn
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_differ_have_their_shape_and_tell_no_order() {
        let drawn: Vec<RequestIds> = (0..1000).map(|_| RequestIds::draw()).collect();
        let differ = drawn.iter().map(RequestIds::request_id);
        assert_eq!(differ.collect::<HashSet<_>>().len(), drawn.len());
        assert!(drawn.iter().all(|ids| ids.request_id().len() == 16));
        assert!(drawn.iter().all(|ids| ids.host_id().len() == 32));
        let ids = RequestIds {
            request: 0x0012_3456_789A_BCDE,
            host: *b"twenty-four bytes of it.",
        };
        assert_eq!(ids.request_id(), "00123456789ABCDE");
        assert_eq!(ids.host_id(), "dHdlbnR5LWZvdXIgYnl0ZXMgb2YgaXQu");
        let values = ids.header_values().unwrap();
        assert!(values[0] == ids.request_id().as_str() && values[1] == ids.host_id().as_str());
        // Of a count, however it is multiplied, neighbours are as far apart as any others.
        let steps = drawn
            .windows(2)
            .map(|two| two[1].request.wrapping_sub(two[0].request));
        assert_eq!(steps.collect::<HashSet<_>>().len(), drawn.len() - 1);
    }

    #[test]
    fn threads_draw_apart() {
        let threads: Vec<_> = (0..4)
            .map(|_| std::thread::spawn(|| RequestIds::draw().host_id()))
            .collect();
        let ids = threads.into_iter().map(|thread| thread.join().unwrap());
        assert_eq!(ids.collect::<HashSet<_>>().len(), 4);
    }
}
