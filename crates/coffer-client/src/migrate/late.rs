//! Tags and locks that were changed at the source after their version had come: nothing in a list
//! tells of them.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::Method;
use hyper::body::Bytes;
use time::OffsetDateTime;

use crate::migrate::Migration;
use crate::migrate::attributes::{Attributes, Lock, plain_tags};
use crate::migrate::body::named;
use crate::migrate::error::MigrateError;
use crate::migrate::place::Place;
use crate::migrate::settings::{leaf, parent};
use crate::s3::checksum::{Algorithm, checksum};
use crate::s3::{Element, ListedVersion, ObjectName};

impl Migration {
    /// Brings tags, retention and legal hold of a version that is there, where they differ.
    pub(super) async fn bring_late(
        &self,
        place: &Arc<Place>,
        of: &ListedVersion,
        there: &ListedVersion,
    ) -> Result<(), MigrateError> {
        let Some(client) = &place.client else {
            return Ok(());
        };
        let now = OffsetDateTime::now_utc();
        let from = named(&place.from, &of.object.key, of);
        let to = place.version_at_target(there);
        let source = Attributes::of_headers(&client.head_object(&from).await?.headers, now);
        let target = Attributes::of_headers(&self.target.head_object(&to).await?.headers, now);
        self.bring_lock(&to, &source.lock, &target.lock).await?;
        let has_none = |tags: Option<u64>| tags.unwrap_or(0) == 0;
        if has_none(source.tags) && has_none(target.tags) {
            return Ok(());
        }
        let (wanted, is) = (client.tags(&from).await?, self.target.tags(&to).await?);
        if plain_tags(&wanted) == plain_tags(&is) {
            return Ok(());
        }
        let request = from.request(Method::GET).query("tagging", "");
        let (tags, _) = client.document(&request).await?;
        self.put_document(&to, "tagging", &tags).await
    }

    async fn bring_lock(
        &self,
        to: &ObjectName,
        source: &Lock,
        target: &Lock,
    ) -> Result<(), MigrateError> {
        if let Some((mode, until)) = &source.retention
            && source.retention != target.retention
        {
            let parts = vec![leaf("Mode", mode), leaf("RetainUntilDate", until)];
            let document = parent("Retention", parts);
            self.put_document(to, "retention", &document).await?;
        }
        if source.is_held != target.is_held {
            let status = if source.is_held { "ON" } else { "OFF" };
            let document = parent("LegalHold", vec![leaf("Status", status)]);
            self.put_document(to, "legal-hold", &document).await?;
        }
        Ok(())
    }

    async fn put_document(
        &self,
        to: &ObjectName,
        parameter: &'static str,
        document: &Element,
    ) -> Result<(), MigrateError> {
        let body = Bytes::from(document.to_xml());
        let md5 = BASE64.encode(checksum(Algorithm::Md5, &body).value);
        let request = to.request(Method::PUT).query(parameter, "");
        let request = request.header("content-md5", md5).body(body, None);
        Ok(self.target.send(&request).await.map(drop)?)
    }
}
