//! What is set of a bucket: made the same at the target where it has a counterpart there, and named
//! where it has none.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::Method;
use hyper::body::Bytes;

use crate::migrate::error::MigrateError;
use crate::migrate::ledger::Ledger;
use crate::migrate::place::{Locks, Place, Versioning};
use crate::migrate::{Migration, Mode};
use crate::s3::checksum::{Algorithm, checksum};
use crate::s3::{Client, Element, Request, S3Error};

use self::said::{Said, said};

mod said;

mod bring;

mod gone;

mod sharing;

/// What may be left behind: settings of buckets, and symbolic links of folders.
pub const SETTINGS: [&str; 14] = [
    "cors",
    "tags",
    "encryption",
    "policy",
    "ownership",
    "public-access-block",
    "lock",
    "lifecycle",
    "acl",
    "website",
    "notification",
    "replication",
    "logging",
    LINKS,
];

/// Symbolic links of folders.
pub(super) const LINKS: &str = "links";

/// Those with a counterpart that are documents of XML, and their parameter.
const BROUGHT: [(&str, &str); 5] = [
    ("cors", "cors"),
    ("tags", "tagging"),
    ("encryption", "encryption"),
    ("lock", LOCK),
    ("lifecycle", "lifecycle"),
];

/// Whether a document says that there is something.
type IsSet = fn(&Element) -> bool;

/// Those without, and when a document says that there is something.
const LEFT: [(&str, IsSet); 5] = [
    ("acl", shares),
    ("website", |document| !document.children.is_empty()),
    ("notification", |document| !document.children.is_empty()),
    ("replication", |document| !document.children.is_empty()),
    ("logging", |document| {
        document.child("LoggingEnabled").is_some()
    }),
];

/// The parameters of what is set of sharing.
const OWNERSHIP: &str = "ownershipControls";
const BLOCKS: &str = "publicAccessBlock";
const POLICY: &str = "policy";

const VERSIONING: &str = "versioning";

const LOCK: &str = "object-lock";

/// What a list of objects is called.
const LIST: &str = "ListBucketResult";

/// Whether a list lets others than the owner do something.
fn shares(list: &Element) -> bool {
    let owner = list.child("Owner").and_then(|owner| owner.text_of("ID"));
    let grants = list.child("AccessControlList");
    let grants = grants.into_iter().flat_map(|list| list.all("Grant"));
    { grants }.any(|grant| {
        let to = grant.child("Grantee");
        // Some services tell neither the owner's id nor the grantee's.
        let is_group = to.is_some_and(|to| to.child("URI").is_some());
        let id = to.and_then(|to| to.value_of("ID"));
        is_group || id.is_some_and(|id| Some(id) != owner)
    })
}

/// What has to be known of a source's bucket before its objects come.
pub(super) struct Before {
    pub(super) versioning: Versioning,
    /// Whether it says so: one that does not may be one that knows no versions.
    pub(super) says_versioning: bool,
    /// Its lock configuration, if it has object lock.
    pub(super) lock: Option<Element>,
    /// Which objects may be locked: where it keeps versions and does not say, all may be.
    pub(super) locks: Locks,
}

fn of_bucket(method: Method, bucket: &str, parameter: &'static str) -> Request {
    Request::of_bucket(method, bucket).query(parameter, "")
}

/// A setting; none where it is not set, or the service knows no such thing: then it says so, or
/// lists objects as if nothing had been asked.
async fn setting(
    client: &Client,
    bucket: &str,
    parameter: &'static str,
) -> Result<Option<Element>, S3Error> {
    let request = of_bucket(Method::GET, bucket, parameter);
    match client.document(&request).await {
        Ok((document, _)) => Ok(Some(document).filter(|it| it.name != LIST)),
        Err(error) if is_unset(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_unset(error: &S3Error) -> bool {
    error.is_not_offered() || error.is_absent() && error.code() != Some("NoSuchBucket")
}

async fn set(
    client: &Client,
    bucket: &str,
    parameter: &'static str,
    body: Vec<u8>,
) -> Result<(), S3Error> {
    let md5 = BASE64.encode(checksum(Algorithm::Md5, &body).value);
    let request = of_bucket(Method::PUT, bucket, parameter)
        .header("content-md5", md5)
        .body(Bytes::from(body), None);
    client.send(&request).await.map(drop)
}

/// An element with text.
pub(super) fn leaf(name: &str, text: &str) -> Element {
    Element {
        name: name.to_owned(),
        text: text.to_owned(),
        ..Element::default()
    }
}

/// An element with others in it.
pub(super) fn parent(name: &str, children: Vec<Element>) -> Element {
    Element {
        name: name.to_owned(),
        children,
        ..Element::default()
    }
}

/// A lock configuration without the retention that new objects get.
fn without_rule(lock: &Element) -> Element {
    let mut lock = lock.clone();
    lock.children.retain(|child| child.name != "Rule");
    lock
}

/// What a document says of what another speaks of.
fn as_far_as_said(mut document: Element, other: &Element) -> Element {
    let children = document.children.into_iter();
    let said = children.filter_map(|child| {
        let other = other.child(&child.name)?;
        Some(as_far_as_said(child, other))
    });
    document.children = said.collect();
    document
}

/// A default encryption without the key that it names, which is one of the source: what is stored
/// at the target is under keys of its own.
fn without_key_id(mut encryption: Element) -> Element {
    let is_key = |child: &Element| child.name == "KMSMasterKeyID";
    encryption.children.retain(|child| !is_key(child));
    let children = encryption.children.into_iter().map(without_key_id);
    encryption.children = children.collect();
    encryption
}

fn other_document() -> MigrateError {
    let what = "the two documents".to_owned();
    MigrateError::Differs { what }
}

pub(super) async fn versioning(client: &Client, bucket: &str) -> Result<Versioning, S3Error> {
    Ok(versioning_said(client, bucket)
        .await?
        .unwrap_or(Versioning::Never))
}

/// What a service says of versioning, if it does: S3 answers with a document in any case.
async fn versioning_said(client: &Client, bucket: &str) -> Result<Option<Versioning>, S3Error> {
    let document = setting(client, bucket, VERSIONING).await?;
    Ok(document.and_then(|it| match it.text_of("Status") {
        Some("Enabled") => Some(Versioning::Enabled),
        Some("Suspended") => Some(Versioning::Suspended),
        _ => Some(Versioning::Never).filter(|_| it.name == "VersioningConfiguration"),
    }))
}

async fn set_versioning(client: &Client, bucket: &str, status: &str) -> Result<(), S3Error> {
    let document = parent("VersioningConfiguration", vec![leaf("Status", status)]);
    set(client, bucket, VERSIONING, document.to_xml().into_bytes()).await
}

/// Whether the target keeps versions as the source does. One may keep them where the source has
/// none.
fn same_versioning(place: &Place, before: &Before) -> Result<(), MigrateError> {
    let is_same = matches!(before.versioning, Versioning::Never) || !place.is_there;
    if is_same || before.versioning == place.versioning {
        return Ok(());
    }
    let (source, target) = (before.versioning.text(), place.versioning.text());
    let what = format!("it is {source} there, and {target} here");
    Err(MigrateError::Differs { what })
}

impl Before {
    pub(super) async fn of(client: &Client, bucket: &str) -> Result<Self, S3Error> {
        let is_on = |lock: &Element| lock.text_of("ObjectLockEnabled") == Some("Enabled");
        let (lock, is_unknown) = match said(client, bucket, LOCK).await? {
            Said::Is(lock) => (Some(lock).filter(is_on), false),
            Said::Unset => (None, false),
            Said::Unknown => (None, true),
        };
        let told = versioning_said(client, bucket).await?;
        let versioning = told.unwrap_or(Versioning::Never);
        let locks = match versioning {
            _ if lock.is_some() => Locks::All,
            Versioning::Enabled if is_unknown => Locks::All,
            // It may not say that it keeps versions either; their ids do.
            Versioning::Never if is_unknown => Locks::WithIds,
            _ => Locks::None,
        };
        Ok(Self {
            says_versioning: told.is_some(),
            locks,
            versioning,
            lock,
        })
    }
}

impl Migration {
    /// Makes the bucket at the target, where it is missing, and has it keep what the source keeps;
    /// nothing, where nothing is moved.
    pub(super) async fn prepare(
        &self,
        bucket: &str,
        is_there: bool,
        before: Option<&Before>,
        ledger: &Ledger,
    ) -> Result<(), MigrateError> {
        if self.options.mode != Mode::Move {
            return Ok(());
        }
        let lock = before.and_then(|before| before.lock.as_ref());
        if !is_there {
            let mut request = Request::of_bucket(Method::PUT, bucket);
            if lock.is_some() {
                request = request.header("x-amz-bucket-object-lock-enabled", "true");
            }
            if let Some(level) = &self.options.level {
                let level = leaf("LocationConstraint", level);
                let document = parent("CreateBucketConfiguration", vec![level]);
                request = request.body(Bytes::from(document.to_xml()), None);
            }
            self.target.send(&request).await?;
            self.note_new(ledger, bucket).await?;
        }
        let Some(before) = before else {
            return Ok(());
        };
        if before.versioning != Versioning::Never {
            let there = versioning(&self.target, bucket).await?;
            let was_enabled = ledger.has_set(VERSIONING).as_deref() == Some("Enabled");
            let is_of_others = there == Versioning::Suspended && was_enabled;
            if there != Versioning::Enabled && (!is_of_others || self.options.overwrite) {
                set_versioning(&self.target, bucket, "Enabled").await?;
                ledger.set(VERSIONING, "Enabled")?;
            }
        }
        if let Some(lock) = lock {
            self.prepare_lock(ledger, bucket, lock).await?;
        }
        Ok(())
    }

    /// Brings what is set of a bucket, when its objects have come; or compares it.
    pub(super) async fn settle(&self, place: &Place, before: &Before) {
        let Some(client) = &place.client else { return };
        for (name, parameter) in BROUGHT {
            if self.comes(name) {
                let done = self.bring_setting(client, place, parameter).await;
                self.setting_missing(place, name, done);
            }
        }
        self.bring_sharing(client, place).await;
        self.name_left(client, place).await;
        let done = match self.options.mode {
            Mode::Move => self.settle_versioning(place, before).await,
            Mode::Check => same_versioning(place, before),
            Mode::Plan => Ok(()),
        };
        self.setting_missing(place, VERSIONING, done);
    }

    /// Suspends versioning as at the source, where it was enabled for what came.
    async fn settle_versioning(&self, place: &Place, before: &Before) -> Result<(), MigrateError> {
        match (before.versioning, place.versioning) {
            (Versioning::Enabled, Versioning::Suspended) => self.may_replace(true),
            (Versioning::Suspended, Versioning::Enabled) => {
                if place.ledger.has_set(VERSIONING).as_deref() != Some("Enabled") {
                    self.may_replace(true)?;
                }
                set_versioning(&self.target, &place.to, "Suspended").await?;
                place.ledger.set(VERSIONING, "Suspended")
            }
            _ => Ok(()),
        }
    }

    /// Whether a setting is to come, or to be named.
    fn comes(&self, name: &str) -> bool {
        !self.options.without.iter().any(|without| without == name)
    }

    /// Names what is set of a bucket, and has no counterpart.
    async fn name_left(&self, client: &Client, place: &Place) {
        for (name, is_set) in LEFT {
            if !self.comes(name) {
                continue;
            }
            // Where that may not be asked, others than its owner bring the bucket.
            let found = setting(client, &place.from, name).await.ok().flatten();
            if found.is_some_and(|document| is_set(&document)) {
                let problem = match name {
                    "acl" => "the list grants rights to groups or accounts of the source, and is \
                              not brought: grant them anew, and --without acl says that this is \
                              done"
                        .to_owned(),
                    name => format!(
                        "the source's {name} has no counterpart at the target; --without {name} \
                         says that this is known"
                    ),
                };
                self.setting_missing(place, name, Err(MigrateError::Setting { problem }));
            }
        }
    }

    fn setting_missing(&self, place: &Place, name: &str, done: Result<(), MigrateError>) {
        if let Err(error) = done {
            place.count(|tally| tally.missing += 1);
            self.missing(&format!("{}: {name}", place.text), &error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_the_owners_alone_shares_nothing() {
        let list = |grants: &str| {
            let text = format!(
                "<AccessControlPolicy><Owner><ID>o</ID></Owner><AccessControlList>{grants}\
                 </AccessControlList></AccessControlPolicy>"
            );
            Element::parse(text.as_bytes()).unwrap()
        };
        let grant = |who: &str| format!("<Grant><Grantee>{who}</Grantee></Grant>");
        assert!(!shares(&list("")));
        assert!(!shares(&list(&grant("<ID>o</ID>"))));
        assert!(!shares(&list(&grant("<ID></ID>"))));
        assert!(shares(&list(&grant("<ID>other</ID>"))));
        assert!(shares(&list(&grant("<URI>all</URI>"))));
    }
}
