//! Tags and locks that were changed at the source after their version had come: nothing in a list
//! tells of them. What others have set here stays: tags and a retention are replaced where they are
//! those that this migration gave, and a hold is lifted where this migration placed it and the
//! source says that it is lifted there. A head without it does not say so: those who may not see
//! holds get the same.
//!
//! Before a change the ledger notes what it makes, and after the answer that it is made. A hold
//! that stands after neither may be another's.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::Method;
use hyper::body::Bytes;
use time::OffsetDateTime;

use crate::migrate::Migration;
use crate::migrate::attributes::{Attributes, Lock, Retention, lasting, plain_tags};
use crate::migrate::body::named;
use crate::migrate::error::{MigrateError, Reach};
use crate::migrate::ledger::Given;
use crate::migrate::place::Place;
use crate::migrate::settings::{leaf, parent};
use crate::s3::checksum::{Algorithm, checksum};
use crate::s3::{Client, Element, ListedVersion, ObjectName, S3Error, tags_of};

/// What answers say of an object that never had a hold, or a retention.
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
    /// What it has of this migration.
    fn given(&self) -> Given {
        self.place.ledger.given(self.key, self.of)
    }

    /// The same, but for changes to which no answer came.
    fn may_have(&self) -> Given {
        self.place.ledger.may_have(self.key, self.of)
    }

    fn giving(&self, given: Given) -> Result<(), MigrateError> {
        self.place.ledger.giving(self.key, self.of, given)
    }

    fn gave(&self, given: Given) -> Result<(), MigrateError> {
        self.place.ledger.gave(self.key, self.of, given)
    }

    /// Whether it is not known if this migration's hold stands.
    fn is_hold_open(&self) -> bool {
        self.given().is_held != self.may_have().is_held
    }

    /// Notes that no hold of this migration stands: one that does is another's from now on.
    fn forget_hold(&self) -> Result<(), MigrateError> {
        if self.given().is_held || self.is_hold_open() {
            self.giving(self.may_have().with_hold(false))?;
            self.gave(self.given().with_hold(false))?;
        }
        Ok(())
    }
}

/// A change at the target that failed, and may have been made.
struct Failed {
    error: S3Error,
    may_be_made: bool,
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

/// Whether an answer of a hold says that there is none.
fn is_free(hold: &Result<Option<bool>, S3Error>) -> bool {
    match hold {
        Ok(held) => *held == Some(false),
        Err(error) => error.code() == Some(NO_LOCK),
    }
}

/// The retention that a service tells: a head may not tell it all that see it.
async fn retention(client: &Client, name: &ObjectName) -> Result<Option<Retention>, MigrateError> {
    let request = name.request(Method::GET).query("retention", "");
    let document = match client.document(&request).await {
        Ok((document, _)) => document,
        Err(error) if error.code() == Some(NO_LOCK) || error.is_not_offered() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if document.name != "Retention" {
        let problem = format!(
            "{} does not say which retention it has, so none is brought",
            client.endpoint().text()
        );
        return Err(MigrateError::Setting { problem });
    }
    let told = document
        .text_of("Mode")
        .zip(document.text_of("RetainUntilDate"));
    Ok(told.and_then(|(mode, until)| lasting(mode, until, OffsetDateTime::now_utc())))
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
        let is_ours = pair.given().has_tags(&there) || pair.may_have().has_tags(&there);
        if !is_ours && !self.options.overwrite {
            return Err(MigrateError::OthersSet {
                what: "the target has other tags",
            });
        }
        let change = |given: Given| given.with_tags(&wanted);
        self.change(pair, ("tagging", &document), change).await
    }

    /// Brings both, whatever becomes of the other.
    async fn bring_lock(
        &self,
        pair: &Pair<'_>,
        source: &Lock,
        target: &Lock,
    ) -> Result<(), MigrateError> {
        let retained = match &source.retention {
            Some(wanted) => self.bring_retention(pair, wanted, target).await,
            None => Ok(()),
        };
        let held = match (source.is_held, target.is_held) {
            (true, true) => Ok(()),
            (true, false) => self.place_hold(pair).await,
            (false, true) => self.lift_hold(pair).await,
            (false, false) => self.see_free(pair).await,
        };
        retained.and(held)
    }

    /// Brings a retention where there is none, or the one that came.
    async fn bring_retention(
        &self,
        pair: &Pair<'_>,
        wanted: &Retention,
        target: &Lock,
    ) -> Result<(), MigrateError> {
        let there = match &target.retention {
            Some(there) => Some(there.clone()),
            None => retention(&self.target, &pair.to).await?,
        };
        if there.as_ref() == Some(wanted) {
            return Ok(());
        }
        let is_ours = |there: &Retention| {
            pair.given().has_retention(there) || pair.may_have().has_retention(there)
        };
        if let Some((mode, until)) = there.filter(|there| !is_ours(there)) {
            return Err(MigrateError::RetainedThere { mode, until });
        }
        let (mode, until) = wanted;
        let parts = vec![leaf("Mode", mode), leaf("RetainUntilDate", until)];
        let document = parent("Retention", parts);
        let change = |given: Given| given.with_retention(wanted);
        self.change(pair, ("retention", &document), change).await
    }

    /// Places a hold. It is this migration's where the target says that there was none: its head
    /// may not tell all that see it.
    async fn place_hold(&self, pair: &Pair<'_>) -> Result<(), MigrateError> {
        let there = hold(&self.target, &pair.to).await;
        if matches!(there, Ok(Some(true))) {
            return Ok(());
        }
        if is_free(&there) {
            pair.forget_hold()?;
            return self.set_hold(pair, true).await;
        }
        let document = hold_document(true);
        let put = self.put_document(&pair.to, "legal-hold", &document);
        put.await.map_err(|failed| failed.error.into())
    }

    /// Sees that there is no hold at both sides: who places one from now on is another.
    async fn see_free(&self, pair: &Pair<'_>) -> Result<(), MigrateError> {
        if !pair.given().is_held && !pair.is_hold_open() {
            return Ok(());
        }
        match { hold(&self.target, &pair.to).await }.map_err(MigrateError::from) {
            // The head does not tell it.
            Ok(Some(true)) => Ok(()),
            Err(error) if error.reach() != Reach::One => Err(error),
            Ok(_) | Err(_) => pair.forget_hold(),
        }
    }

    /// Lifts a hold that this migration placed, and that is lifted at the source.
    async fn lift_hold(&self, pair: &Pair<'_>) -> Result<(), MigrateError> {
        if pair.is_hold_open() {
            let why = "may be another's by now: this migration was placing or lifting one there, \
                       and no answer said that it was done";
            return Err(MigrateError::HeldThere { why });
        }
        if !pair.given().is_held {
            let why = "this migration did not place";
            return Err(MigrateError::HeldThere { why });
        }
        match { hold(pair.client, &pair.from).await }.map_err(MigrateError::from) {
            Ok(Some(false)) => self.set_hold(pair, false).await,
            Ok(Some(true)) => Ok(()),
            Err(error) if error.reach() != Reach::One => Err(error),
            Ok(None) | Err(_) => {
                let why = "came from the source, which does not say whether it is lifted there";
                Err(MigrateError::HeldThere { why })
            }
        }
    }

    /// Places or lifts a hold. Where no answer comes, the target is asked at once what it became:
    /// later it may be another's.
    async fn set_hold(&self, pair: &Pair<'_>, is_held: bool) -> Result<(), MigrateError> {
        let change = |given: Given| given.with_hold(is_held);
        let document = hold_document(is_held);
        let error = match self.change(pair, ("legal-hold", &document), change).await {
            Err(error) if pair.is_hold_open() => error,
            done => return done,
        };
        let there = hold(&self.target, &pair.to).await;
        let is_free = is_free(&there);
        if !is_free && !matches!(there, Ok(Some(true))) {
            return Err(error);
        }
        if is_free != is_held {
            return pair.gave(change(pair.given()));
        }
        pair.giving(pair.may_have().with_hold(!is_held))?;
        Err(error)
    }

    /// Changes something of a version at the target, and notes it.
    async fn change(
        &self,
        pair: &Pair<'_>,
        (parameter, document): (&'static str, &Element),
        change: impl Fn(Given) -> Given,
    ) -> Result<(), MigrateError> {
        let before = pair.may_have();
        pair.giving(change(before))?;
        match self.put_document(&pair.to, parameter, document).await {
            Ok(()) => pair.gave(change(pair.given())),
            Err(failed) => {
                if !failed.may_be_made {
                    pair.giving(before)?;
                }
                Err(failed.error.into())
            }
        }
    }

    async fn put_document(
        &self,
        to: &ObjectName,
        parameter: &'static str,
        document: &Element,
    ) -> Result<(), Failed> {
        let body = Bytes::from(document.to_xml());
        let md5 = BASE64.encode(checksum(Algorithm::Md5, &body).value);
        let request = to.request(Method::PUT).query(parameter, "");
        let request = request.header("content-md5", md5).body(body, None);
        let (mut attempt, mut may_be_made) = (0, false);
        loop {
            let error = match self.target.send_once(&request).await {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            may_be_made |= error.is_without_answer() || error.is_doubtful();
            attempt += 1;
            let paused = self.target.pause(attempt, error).await;
            paused.map_err(|error| Failed { error, may_be_made })?;
        }
    }
}

fn hold_document(is_held: bool) -> Element {
    let status = if is_held { "ON" } else { "OFF" };
    parent("LegalHold", vec![leaf("Status", status)])
}
