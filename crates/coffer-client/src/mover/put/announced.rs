//! Bytes that go to a server's data port, sealed: announced, sent, and a ticket to commit with.

use http::Method;
use hyper::body::Bytes;
use tokio::task::spawn_blocking;
use zeroize::Zeroizing;

use crate::limits::{TRANSFER_ANSWER_BYTES, TRANSFER_SMALL_BYTES};
use crate::mover::Mover;
use crate::mover::error::MoverError;
use crate::mover::events::Event;
use crate::mover::sealed_way::TicketWait;
use crate::s3::checksum::Algorithm;
use crate::s3::{ObjectName, Request};
use crate::sealed::{
    ANNOUNCE, Announced, Announcement, LENGTH_HEADER, SealedError, TRANSFER_HEADER,
};

impl Mover {
    /// Sends the bytes of an object, or of a part of one, sealed, where that is wanted and the
    /// server takes them so. Gives the header that commits them; none where they are to go as
    /// usual.
    pub(super) async fn announced(
        &self,
        body: &Bytes,
        name: &ObjectName,
        part: Option<(&str, u32)>,
        headers: &[(String, String)],
    ) -> Result<Option<(String, String)>, MoverError> {
        let (mut attempt, mut tickets) = (0, TicketWait::default());
        let may_be_tls = body.len() as u64 <= TRANSFER_SMALL_BYTES || !self.sealed.is_demanded();
        while self.sealed.is_wanted(&self.client, &name.bucket).await? {
            let announcement = match self.announce(body, name, part, headers).await? {
                Announced::ByTls if may_be_tls => return Ok(None),
                Announced::ByTls => {
                    self.wait_for_ticket(&mut tickets).await?;
                    continue;
                }
                Announced::Sealed(announcement) => announcement,
            };
            match self.send_sealed(announcement, body.clone()).await {
                Ok(ticket) => {
                    return Ok(Some((
                        TRANSFER_HEADER.to_owned(),
                        ticket.as_str().to_owned(),
                    )));
                }
                Err(error) => {
                    attempt += 1;
                    self.after_sealed(attempt, error).await?;
                }
            }
        }
        Ok(None)
    }

    async fn announce(
        &self,
        body: &Bytes,
        name: &ObjectName,
        part: Option<(&str, u32)>,
        headers: &[(String, String)],
    ) -> Result<Announced, MoverError> {
        let bytes = body.len() as u64;
        let mut request: Request = name
            .request(Method::POST)
            .query(ANNOUNCE, "")
            .headers(headers)
            .header(LENGTH_HEADER, bytes.to_string())
            .header("x-amz-checksum-algorithm", Algorithm::Crc64Nvme.name());
        if let Some((upload_id, number)) = part {
            request = request
                .query("partNumber", number.to_string())
                .query("uploadId", upload_id);
        }
        let answer = self.client.send(&request).await?;
        let document = Zeroizing::new(answer.whole(TRANSFER_ANSWER_BYTES).await?.to_vec());
        let host = self.client.endpoint().host();
        Ok(Announced::read(&document, bytes, host)?)
    }

    async fn send_sealed(
        &self,
        announcement: Announcement,
        body: Bytes,
    ) -> Result<Zeroizing<String>, SealedError> {
        let (mut lane, watch) = (self.sealed.lane(), std::sync::Arc::clone(&self.watch));
        let sending = spawn_blocking(move || {
            let mut told = 0;
            let sent = lane.send(announcement, &body, |bytes| {
                told += bytes as i64;
                watch.event(&Event::Bytes(bytes as i64));
            });
            if sent.is_err() {
                watch.event(&Event::Bytes(-told));
            }
            (lane, sent)
        });
        match sending.await {
            Ok((lane, sent)) => {
                if sent.is_ok() {
                    self.sealed.keep(lane);
                }
                sent
            }
            Err(error) => Err(SealedError::Local(std::io::Error::other(error))),
        }
    }
}
