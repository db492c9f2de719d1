//! Access control lists: as requests ask for them, and as they are kept.

use std::collections::BTreeMap;

use coffer_policy::{
    Acl, CannedAcl, Grant, Grantee, Group, Key, ObjectOwnership, Permission, SubjectId,
};
use coffer_store::record::Access;
use serde::{Deserialize, Serialize};

use crate::error::{Result, VaultError};

/// A list that a request asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AskedAcl {
    /// None: the owner's alone.
    #[default]
    None,
    /// A canned one.
    Canned(CannedAcl),
    /// These grants, and no other.
    Grants(Vec<AskedGrant>),
    /// A whole list, which says whose the bucket or the object is.
    Document {
        /// The canonical user id of the owner.
        owner: String,
        /// The grants.
        grants: Vec<AskedGrant>,
    },
}

impl AskedAcl {
    /// Whether there are buckets that take it and others that don't. What gives nothing to others
    /// is taken where lists are off, too.
    pub(crate) fn may_be_refused(&self) -> bool {
        let is_taken = |canned: &CannedAcl| {
            matches!(
                canned,
                CannedAcl::Private | CannedAcl::BucketOwnerFullControl
            )
        };
        match self {
            Self::None => false,
            Self::Canned(canned) => !is_taken(canned),
            Self::Grants(_) | Self::Document { .. } => true,
        }
    }
}

/// What a request's headers say of a list, as they were sent: the condition key of each, and its
/// text.
pub type ListAsSent = BTreeMap<Key, String>;

/// A grant that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedGrant {
    /// To whom.
    pub to: AskedGrantee,
    /// What.
    pub permission: Permission,
}

/// Whom a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskedGrantee {
    /// A subject, by a canonical user id.
    Id(String),
    /// A group.
    Group(Group),
}

impl AskedAcl {
    /// The canned list, if it is one.
    pub(crate) fn canned(&self) -> Option<CannedAcl> {
        match self {
            Self::Canned(canned) => Some(*canned),
            _ => None,
        }
    }
}

/// A grant, as it is kept: to a subject's id or a group's URI.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptGrant {
    to: String,
    may: String,
}

/// Whose the object of an upload is to be and who else may use it, as it is kept; and the headers
/// that said so, by their condition keys.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptAccess {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    grants: Option<Vec<KeptGrant>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    sent: BTreeMap<String, String>,
}

/// The grants of a list, as they are kept; none of one that gives all to its owner and nothing to
/// others, as where there is none.
pub(crate) fn kept_grants(acl: &Acl) -> Option<String> {
    let is_private = match acl.grants() {
        [grant] => {
            let is_owner =
                matches!(&grant.grantee, Grantee::Subject(id) if Some(id) == acl.owner());
            is_owner && grant.permission == Permission::FullControl
        }
        _ => false,
    };
    let json = || serde_json::to_string(&to_kept(acl.grants())).expect("words are always JSON");
    (!is_private).then(json)
}

fn to_kept(grants: &[Grant]) -> Vec<KeptGrant> {
    let kept = |grant: &Grant| KeptGrant {
        to: match &grant.grantee {
            Grantee::Subject(id) => id.to_string(),
            Grantee::Group(group) => group.uri().to_owned(),
        },
        may: grant.permission.name().to_owned(),
    };
    grants.iter().map(kept).collect()
}

/// The list that is kept for what belongs to this owner.
///
/// # Errors
/// [`VaultError::Damaged`].
pub(crate) fn acl_of(owner: SubjectId, kept: Option<&str>) -> Result<Acl> {
    let grants = match kept {
        None => return Ok(CannedAcl::Private.grants(Some(&owner), Some(&owner))),
        Some(kept) => serde_json::from_str::<Vec<KeptGrant>>(kept),
    };
    let grants = grants.map_err(|_| VaultError::Damaged)?;
    let grants: Option<Vec<Grant>> = grants.into_iter().map(of_kept).collect();
    let acl = Acl::new(Some(owner), grants.ok_or(VaultError::Damaged)?);
    acl.map_err(|_| VaultError::Damaged)
}

fn of_kept(kept: KeptGrant) -> Option<Grant> {
    let grantee = match Group::from_uri(&kept.to) {
        Some(group) => Grantee::Group(group),
        None => Grantee::Subject(kept.to.parse().ok()?),
    };
    Some(Grant {
        grantee,
        permission: Permission::from_name(&kept.may)?,
    })
}

/// What is kept with an upload of the object that it is to become; none where that is the bucket
/// owner's alone, and no header said anything of a list.
pub(crate) fn kept_with_upload(access: &Access, sent: &ListAsSent) -> Option<String> {
    let Access { owner, acl } = access;
    if owner.is_none() && acl.is_none() && sent.is_empty() {
        return None;
    }
    let sent = { sent.iter() }.map(|(key, text)| (key.to_string(), text.clone()));
    let kept = KeptAccess {
        owner: owner.clone(),
        grants: acl
            .as_deref()
            .and_then(|acl| serde_json::from_str(acl).ok()),
        sent: sent.collect(),
    };
    Some(serde_json::to_string(&kept).expect("words are always JSON"))
}

/// The same, back.
///
/// # Errors
/// [`VaultError::Damaged`].
pub(crate) fn access_of_upload(kept: Option<&str>) -> Result<Access> {
    let Some(kept) = kept else {
        return Ok(Access::default());
    };
    let kept: KeptAccess = serde_json::from_str(kept).map_err(|_| VaultError::Damaged)?;
    let json = |grants| serde_json::to_string(&grants).expect("words are always JSON");
    Ok(Access {
        owner: kept.owner,
        acl: kept.grants.map(json),
    })
}

/// What the headers said of a list by which an upload was begun; nothing of one that was begun
/// before that was kept.
///
/// # Errors
/// [`VaultError::Damaged`].
pub(crate) fn list_sent_with_upload(kept: Option<&str>) -> Result<ListAsSent> {
    let Some(kept) = kept else {
        return Ok(ListAsSent::new());
    };
    let kept: KeptAccess = serde_json::from_str(kept).map_err(|_| VaultError::Damaged)?;
    let known = |(key, text): (String, String)| Some((Key::parse(&key)?, text));
    let sent: Option<ListAsSent> = kept.sent.into_iter().map(known).collect();
    sent.ok_or(VaultError::Damaged)
}

/// What is kept of ownership controls that were removed: then lists count, too.
const REMOVED: &str = "removed";

/// Who owns objects, as it is kept: nothing where it is who owns the bucket.
pub(crate) fn ownership_document(ownership: Option<ObjectOwnership>) -> Option<String> {
    match ownership {
        None => Some(REMOVED.to_owned()),
        Some(ObjectOwnership::BucketOwnerEnforced) => None,
        Some(other) => Some(other.name().to_owned()),
    }
}

/// Who owns objects; none where that was removed.
///
/// # Errors
/// [`VaultError::Damaged`].
pub(crate) fn ownership_of(document: Option<&str>) -> Result<Option<ObjectOwnership>> {
    match document {
        None => Ok(Some(ObjectOwnership::BucketOwnerEnforced)),
        Some(REMOVED) => Ok(None),
        Some(name) => {
            let known = ObjectOwnership::from_name(name).filter(|known| known.has_acls());
            known.map(Some).ok_or(VaultError::Damaged)
        }
    }
}

/// Who owns objects, as it counts.
pub(crate) fn counted(ownership: Option<ObjectOwnership>) -> ObjectOwnership {
    ownership.unwrap_or(ObjectOwnership::ObjectWriter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(digit: char) -> SubjectId {
        digit.to_string().repeat(32).parse().unwrap()
    }

    #[test]
    fn lists_are_kept_as_json() {
        let (owner, other) = (id('1'), id('2'));
        for canned in [
            CannedAcl::PublicReadWrite,
            CannedAcl::AuthenticatedRead,
            CannedAcl::BucketOwnerFullControl,
            CannedAcl::LogDeliveryWrite,
        ] {
            let acl = canned.grants(Some(&owner), Some(&other));
            let kept = kept_grants(&acl).unwrap();
            assert_eq!(acl_of(owner.clone(), Some(&kept)).unwrap(), acl);
        }
        let private = CannedAcl::Private.grants(Some(&owner), Some(&other));
        assert_eq!(kept_grants(&private), None);
        assert_eq!(acl_of(owner.clone(), None).unwrap(), private);
        let nothing = Acl::new(Some(owner.clone()), Vec::new()).unwrap();
        assert_eq!(kept_grants(&nothing).as_deref(), Some("[]"));
        for damaged in ["", "{}", r#"[{"to":"x","may":"READ"}]"#, r#"[{"to":1}]"#] {
            assert!(acl_of(owner.clone(), Some(damaged)).is_err(), "{damaged}");
        }
    }

    #[test]
    fn an_upload_keeps_whose_its_object_is_to_be() {
        let public = CannedAcl::PublicRead.grants(Some(&id('1')), None);
        for access in [
            Access::default(),
            Access {
                owner: Some(id('1').to_string()),
                acl: None,
            },
            Access {
                owner: Some(id('1').to_string()),
                acl: kept_grants(&public),
            },
        ] {
            let text = r#"id="1", uri="x""#.to_owned();
            for sent in [ListAsSent::new(), [(Key::GrantRead, text)].into()] {
                let kept = kept_with_upload(&access, &sent);
                let is_plain = access == Access::default() && sent.is_empty();
                assert_eq!(kept.is_none(), is_plain);
                assert_eq!(access_of_upload(kept.as_deref()).unwrap(), access);
                assert_eq!(list_sent_with_upload(kept.as_deref()).unwrap(), sent);
            }
        }
        // As it was kept before the headers were.
        let old = Some(r#"{"grants":[]}"#);
        assert_eq!(access_of_upload(old).unwrap().acl.as_deref(), Some("[]"));
        assert_eq!(list_sent_with_upload(old).unwrap(), ListAsSent::new());
        for damaged in ["", "1", r#"{"else":1}"#, r#"{"grants":[1]}"#] {
            assert!(access_of_upload(Some(damaged)).is_err(), "{damaged}");
        }
        assert!(list_sent_with_upload(Some(r#"{"sent":{"x":"y"}}"#)).is_err());
    }

    #[test]
    fn ownership_is_kept_by_its_name_and_enforced_by_nothing() {
        use ObjectOwnership::{BucketOwnerEnforced, BucketOwnerPreferred, ObjectWriter};
        for ownership in [
            Some(BucketOwnerEnforced),
            Some(BucketOwnerPreferred),
            Some(ObjectWriter),
            None,
        ] {
            let document = ownership_document(ownership);
            assert_eq!(ownership_of(document.as_deref()).unwrap(), ownership);
        }
        assert_eq!(counted(None), ObjectWriter);
        assert!(ownership_of(Some("BucketOwnerEnforced")).is_err());
    }
}
