//! Tags and locks that were changed at the source after their version had come: nothing in a list
//! tells of them. What others have set here stays: tags are replaced where they are those that this
//! migration gave, and a hold is lifted where this migration placed it and the source says that it
//! is lifted there. A head without it does not say so: those who may not see holds get the same.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::Method;
use hyper::body::Bytes;
use time::OffsetDateTime;

use crate::migrate::Migration;
use crate::migrate::attributes::{Attributes, Lock, plain_tags};
use crate::migrate::body::named;
use crate::migrate::error::{MigrateError, Reach};
use crate::migrate::ledger::Given;
use crate::migrate::place::Place;
use crate::migrate::settings::{leaf, parent};
use crate::s3::checksum::{Algorithm, checksum};
use crate::s3::{Client, Element, ListedVersion, ObjectName, S3Error, tags_of};

/// What answers say of an object that never had a hold.
const NO_LOCK: &str = "NoSuchObjectLockConfiguration";

/// A version at both sides.
struct Pair<'a> {
    place: &'a Place,
    client: &'a Client,
    key: &'a str,
    of: &'a ListedVersion,
    from: ObjectName,
    to: ObjectName,
}

impl Pair<'_> {
    fn given(&self) -> Option<Given> {
        self.place.ledger.given(self.key, self.of)
    }

    /// Notes what it has by now of this migration.
    fn gave(&self, change: impl FnOnce(Given) -> Given) -> Result<(), MigrateError> {
        let given = change(self.given().unwrap_or_default());
        self.place.ledger.gave(self.key, self.of, given)
    }
}

/// Whether a service says that there is a hold, or that there is none; none, where it says neither.
async fn hold(client: &Client, name: &ObjectName) -> Result<Option<bool>, S3Error> {
    let request = name.request(Method::GET).query("legal-hold", "");
    let (document, _) = client.document(&request).await?;
    let is_hold = document.name == "LegalHold";
    let status = document.text_of("Status").filter(|_| is_hold);
    Ok(match status {
        Some("ON") => Some(true),
        Some("OFF") => Some(false),
        _ => None,
    })
}

/// The document of tags, and the tags.
async fn tags(client: &Client, name: &ObjectName) -> Result<(Element, String), MigrateError> {
    let request = name.request(Method::GET).query("tagging", "");
    let (document, _) = client.document(&request).await?;
    if document.name != "Tagging" || document.child("TagSet").is_none() {
        let problem = format!(
            "{} does not say which tags it has, so none are brought",
            client.endpoint().text()
        );
        return Err(MigrateError::Setting { problem });
    }
    let tags = tags_of(&document);
    Ok((document, tags))
}

impl Migration {
    /// Brings tags, retention and legal hold of a version that is there, where they differ.
    pub(super) async fn bring_late(
        &self,
        place: &Arc<Place>,
        key: &str,
        of: &ListedVersion,
        there: &ListedVersion,
    ) -> Result<(), MigrateError> {
        let Some(client) = &place.client else {
            return Ok(());
        };
        let now = OffsetDateTime::now_utc();
        let pair = Pair {
            place,
            client,
            key,
            of,
            from: named(&place.from, &of.object.key, of),
            to: place.version_at_target(there),
        };
        let head = client.head_object(&pair.from).await?;
        let source = Attributes::of_headers(&head.headers, now);
        let head = self.target.head_object(&pair.to).await?;
        let target = Attributes::of_headers(&head.headers, now);
        let locked = self.bring_lock(&pair, &source.lock, &target.lock).await;
        let tagged = self.bring_tags(&pair, source.tags, target.tags).await;
        locked.and(tagged)
    }

    async fn bring_tags(
        &self,
        pair: &Pair<'_>,
        at_source: Option<u64>,
        at_target: Option<u64>,
    ) -> Result<(), MigrateError> {
        let has_none = |tags: Option<u64>| tags.unwrap_or(0) == 0;
        if has_none(at_source) && has_none(at_target) {
            return Ok(());
        }
        let (document, wanted) = tags(pair.client, &pair.from).await?;
        let (_, there) = tags(&self.target, &pair.to).await?;
        if plain_tags(&wanted) == plain_tags(&there) {
            return Ok(());
        }
        let is_ours = { pair.given() }.map_or(there.is_empty(), |given| given.has_tags(&there));
        if !is_ours && !self.options.overwrite {
            return Err(MigrateError::OthersSet {
                what: "the target has other tags",
            });
        }
        self.put_document(&pair.to, "tagging", &document).await?;
        pair.gave(|given| given.with_tags(&wanted))
    }

    async fn bring_lock(
        &self,
        pair: &Pair<'_>,
        source: &Lock,
        target: &Lock,
    ) -> Result<(), MigrateError> {
        if let Some((mode, until)) = &source.retention
            && source.retention != target.retention
        {
            let parts = vec![leaf("Mode", mode), leaf("RetainUntilDate", until)];
            let document = parent("Retention", parts);
            self.put_document(&pair.to, "retention", &document).await?;
        }
        match (source.is_held, target.is_held) {
            (true, false) => self.place_hold(pair).await,
            (false, true) => self.lift_hold(pair).await,
            _ => Ok(()),
        }
    }

    /// Places a hold. It is this migration's where the target says that there was none: its head
    /// may not tell all that see it.
    async fn place_hold(&self, pair: &Pair<'_>) -> Result<(), MigrateError> {
        let was_free = match hold(&self.target, &pair.to).await {
            Ok(Some(true)) => return Ok(()),
            Ok(said) => said == Some(false),
            Err(error) => error.code() == Some(NO_LOCK),
        };
        self.put_hold(&pair.to, "ON").await?;
        if was_free {
            pair.gave(|given| given.with_hold(true))?;
        }
        Ok(())
    }

    /// Lifts a hold that this migration placed, and that is lifted at the source.
    async fn lift_hold(&self, pair: &Pair<'_>) -> Result<(), MigrateError> {
        if !pair.given().is_some_and(|given| given.is_held) {
            let why = "this migration did not place";
            return Err(MigrateError::HeldThere { why });
        }
        match hold(pair.client, &pair.from)
            .await
            .map_err(MigrateError::from)
        {
            Ok(Some(false)) => {}
            Ok(Some(true)) => return Ok(()),
            Err(error) if error.reach() != Reach::One => return Err(error),
            Ok(None) | Err(_) => {
                let why = "came from the source, which does not say whether it is lifted there";
                return Err(MigrateError::HeldThere { why });
            }
        }
        // First: one that others place meanwhile is theirs.
        pair.gave(|given| given.with_hold(false))?;
        self.put_hold(&pair.to, "OFF").await
    }

    async fn put_hold(&self, to: &ObjectName, status: &str) -> Result<(), MigrateError> {
        let document = parent("LegalHold", vec![leaf("Status", status)]);
        self.put_document(to, "legal-hold", &document).await
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
