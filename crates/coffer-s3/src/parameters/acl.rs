//! Access control lists, as headers and XML ask for them.

use coffer_vault::policy::limits::GRANTS;
use coffer_vault::policy::{AclRefusal, CannedAcl, Group, Key, Permission};
use coffer_vault::{AskedAcl, AskedGrant, AskedGrantee, ListAsSent, SharingError};
use http::{HeaderMap, StatusCode};
use s3s::dto::{AccessControlPolicy, Type};
use s3s::{S3Error, S3Result, s3_error};

use crate::errors::details::of_argument;
use crate::errors::{custom, from_vault};
use crate::http::{has_any, text_of};

const ACL: &str = "x-amz-acl";

/// How the names begin of headers that give grants.
const GRANT: &str = "x-amz-grant-";

const HEADERS: [(&str, Permission, Key); 5] = [
    (
        "x-amz-grant-full-control",
        Permission::FullControl,
        Key::GrantFullControl,
    ),
    ("x-amz-grant-read", Permission::Read, Key::GrantRead),
    (
        "x-amz-grant-read-acp",
        Permission::ReadAcp,
        Key::GrantReadAcp,
    ),
    ("x-amz-grant-write", Permission::Write, Key::GrantWrite),
    (
        "x-amz-grant-write-acp",
        Permission::WriteAcp,
        Key::GrantWriteAcp,
    ),
];

/// What headers say of a list, in their own words.
pub(crate) fn sent(headers: &HeaderMap) -> ListAsSent {
    let names = HEADERS.map(|(name, _, key)| (name, key));
    let names = [(ACL, Key::Acl)].into_iter().chain(names);
    let sent = names.filter_map(|(name, key)| Some((key, sent_under(headers, name)?)));
    sent.collect()
}

/// The text of a header of a list; none where it is empty. Of several that give grants each gives
/// something, of several that name a canned list the first one counts.
pub(crate) fn sent_under(headers: &HeaderMap, name: &str) -> Option<String> {
    let count = if name == ACL { 1 } else { usize::MAX };
    let values = headers.get_all(name).iter().take(count);
    let values = values.map(|value| String::from_utf8_lossy(value.as_bytes()));
    let joined = values.collect::<Vec<_>>().join(",");
    (!joined.is_empty()).then_some(joined)
}

/// The list that headers ask for.
///
/// # Errors
/// As S3: `InvalidArgument` for what is no list, `InvalidRequest` for two of them, and
/// `MethodNotAllowed` for one that names an email address.
pub(crate) fn asked(headers: &HeaderMap) -> S3Result<AskedAcl> {
    if !has_any(headers, ACL) && !has_any(headers, GRANT) {
        return Ok(AskedAcl::None);
    }
    let has_grants = HEADERS.iter().any(|(name, ..)| headers.contains_key(*name));
    let canned = match headers.get(ACL) {
        None => None,
        Some(value) if value.is_empty() => None,
        Some(_) if has_grants => {
            return Err(s3_error!(
                InvalidRequest,
                "Specifying both Canned ACLs and Header Grants is not allowed"
            ));
        }
        Some(value) => {
            let known = value.to_str().ok().and_then(CannedAcl::from_name);
            Some(known.ok_or_else(|| {
                let error = s3_error!(InvalidArgument, "{ACL} names no canned ACL");
                of_argument(error, ACL, &text_of(value.as_bytes()))
            })?)
        }
    };
    let mut grants = Vec::new();
    for (name, permission, _) in HEADERS {
        for value in headers.get_all(name) {
            let text = value.to_str().map_err(|_| not_recognized())?;
            read_grantees(text, permission, &mut grants)?;
        }
    }
    match canned {
        Some(canned) => Ok(AskedAcl::Canned(canned)),
        None if has_grants => Ok(AskedAcl::Grants(grants)),
        None => Ok(AskedAcl::None),
    }
}

/// Refuses lists that give anything to others than the owner, where what there is keeps its own.
///
/// # Errors
/// `AccessControlListNotSupported`, and those of [`asked`].
pub(crate) fn refuse_grants_to_others(headers: &HeaderMap) -> S3Result {
    match asked(headers)? {
        AskedAcl::None
        | AskedAcl::Canned(CannedAcl::Private | CannedAcl::BucketOwnerFullControl) => Ok(()),
        _ => Err(from_vault(
            SharingError::Acl(AclRefusal::NotSupported).into(),
        )),
    }
}

/// Reads what a header of grants names: `id="…", uri="…"`.
fn read_grantees(text: &str, permission: Permission, grants: &mut Vec<AskedGrant>) -> S3Result {
    for named in text.split(',') {
        let (kind, value) = named.split_once('=').ok_or_else(not_recognized)?;
        let value = value.trim();
        let inner = value.strip_prefix('"').map(|rest| rest.strip_suffix('"'));
        let value = inner.unwrap_or(Some(value)).ok_or_else(not_recognized)?;
        let to = match kind.trim() {
            kind if kind.eq_ignore_ascii_case("id") => AskedGrantee::Id(value.to_owned()),
            kind if kind.eq_ignore_ascii_case("uri") => group(value)?,
            kind if kind.eq_ignore_ascii_case("emailAddress") => return Err(email()),
            _ => return Err(not_recognized()),
        };
        add(grants, AskedGrant { to, permission })?;
    }
    Ok(())
}

/// The list that a document asks for.
///
/// # Errors
/// As S3: `MalformedACLError` for what is no list, `InvalidArgument` for a group that there isn't,
/// `MethodNotAllowed` for an email address.
pub(crate) fn of_document(policy: AccessControlPolicy) -> S3Result<AskedAcl> {
    let owner = policy.owner.and_then(|owner| owner.id);
    let owner = owner.ok_or_else(malformed)?;
    let mut grants = Vec::new();
    for grant in policy.grants.ok_or_else(malformed)? {
        let permission = grant.permission.ok_or_else(malformed)?;
        let permission = Permission::from_name(permission.as_str()).ok_or_else(malformed)?;
        let grantee = grant.grantee.ok_or_else(malformed)?;
        let is_group = grantee.type_.as_str() == Type::GROUP;
        if is_group != grantee.uri.is_some() && grantee.email_address.is_none() {
            return Err(malformed());
        }
        let to = match (grantee.id, grantee.uri, grantee.email_address) {
            (Some(id), None, None) => AskedGrantee::Id(id),
            (None, Some(uri), None) => group(&uri)?,
            (None, None, Some(_)) => return Err(email()),
            _ => return Err(malformed()),
        };
        add(&mut grants, AskedGrant { to, permission })?;
    }
    Ok(AskedAcl::Document { owner, grants })
}

fn add(grants: &mut Vec<AskedGrant>, grant: AskedGrant) -> S3Result {
    if grants.len() == GRANTS {
        return Err(malformed());
    }
    grants.push(grant);
    Ok(())
}

fn group(uri: &str) -> S3Result<AskedGrantee> {
    let group = Group::from_uri(uri);
    let group = group.ok_or_else(|| {
        let error = s3_error!(InvalidArgument, "Invalid group uri");
        of_argument(error, "uri", uri)
    })?;
    Ok(AskedGrantee::Group(group))
}

/// Since October 2025 S3 knows no grantees by their email addresses any more.
fn email() -> S3Error {
    s3_error!(
        MethodNotAllowed,
        "Grantees are named by canonical user ids or by groups, not by email addresses"
    )
}

fn not_recognized() -> S3Error {
    s3_error!(InvalidArgument, "Argument format not recognized")
}

/// `MalformedACLError`.
pub(crate) fn malformed() -> S3Error {
    custom(
        "MalformedACLError",
        StatusCode::BAD_REQUEST,
        "The XML you provided was not well-formed or did not validate against our published \
         schema: an access control list has an Owner and at most 100 grants, each with a grantee \
         and a permission",
    )
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};
    use s3s::dto::{Grant, Grantee, Owner};

    use super::*;

    fn read(pairs: &[(&'static str, &str)]) -> Result<AskedAcl, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name = HeaderName::from_static(name);
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        asked(&headers).map_err(|error| error.code().as_str().to_owned())
    }

    #[test]
    fn headers_name_a_canned_list_or_grants() {
        assert_eq!(read(&[]), Ok(AskedAcl::None));
        assert_eq!(read(&[("x-amz-acl", "")]), Ok(AskedAcl::None));
        let public = AskedAcl::Canned(CannedAcl::PublicRead);
        assert_eq!(read(&[("x-amz-acl", "public-read")]), Ok(public));
        let grant = |to, permission| AskedGrant { to, permission };
        let all = "uri=\"http://acs.amazonaws.com/groups/global/AllUsers\"";
        let given = read(&[
            ("x-amz-grant-read", &format!("id=\"a\", {all}")),
            ("x-amz-grant-write-acp", "ID=b"),
        ]);
        let expected = vec![
            grant(AskedGrantee::Id("a".into()), Permission::Read),
            grant(AskedGrantee::Group(Group::AllUsers), Permission::Read),
            grant(AskedGrantee::Id("b".into()), Permission::WriteAcp),
        ];
        assert_eq!(given, Ok(AskedAcl::Grants(expected)));
    }

    #[test]
    fn lists_are_kept_in_the_words_of_their_headers() {
        let mut headers = HeaderMap::new();
        assert_eq!(sent(&headers), ListAsSent::new());
        for (name, value) in [
            ("x-amz-acl", "public-read"),
            ("x-amz-acl", "private"),
            ("x-amz-grant-read", r#"id="a""#),
            ("x-amz-grant-read", "ID=b"),
            ("x-amz-grant-write", ""),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        let expected = [
            (Key::Acl, "public-read".to_owned()),
            (Key::GrantRead, r#"id="a",ID=b"#.to_owned()),
        ];
        assert_eq!(sent(&headers), ListAsSent::from(expected));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let refused = |code: &str| Err(code.to_owned());
        assert_eq!(read(&[("x-amz-acl", "x")]), refused("InvalidArgument"));
        let both = [("x-amz-acl", "private"), ("x-amz-grant-read", "id=x")];
        assert_eq!(read(&both), refused("InvalidRequest"));
        let email = [("x-amz-grant-read", "emailAddress=\"a@example.org\"")];
        assert_eq!(read(&email), refused("MethodNotAllowed"));
        for text in [
            "",
            "id",
            "id=\"a",
            "name=a",
            "id=a,",
            "uri=\"http://other\"",
        ] {
            let read = read(&[("x-amz-grant-read", text)]);
            assert_eq!(read, refused("InvalidArgument"), "{text}");
        }
        let many = vec!["id=a"; GRANTS + 1].join(",");
        let read = read(&[("x-amz-grant-read", &many)]);
        assert_eq!(read, refused("MalformedACLError"));
    }

    #[test]
    fn documents_have_an_owner_and_grants() {
        let grantee = |id: Option<&str>, uri: Option<&str>, email: Option<&str>| Grantee {
            display_name: None,
            email_address: email.map(Into::into),
            id: id.map(Into::into),
            type_: Type::from_static(uri.map_or(Type::CANONICAL_USER, |_| Type::GROUP)),
            uri: uri.map(Into::into),
        };
        let group_by_id = || Grantee {
            type_: Type::from_static(Type::GROUP),
            ..grantee(Some("a"), None, None)
        };
        let grant = |grantee, permission: &'static str| Grant {
            grantee: Some(grantee),
            permission: Some(s3s::dto::Permission::from_static(permission)),
        };
        let owner = |id: &str| Owner {
            id: Some(id.to_owned()),
            display_name: None,
        };
        let code = |grants: Option<Vec<Grant>>, owner| {
            let read = of_document(AccessControlPolicy { grants, owner });
            read.err().map(|error| error.code().as_str().to_owned())
        };
        let good = || grant(grantee(Some("a"), None, None), "READ");
        assert_eq!(code(Some(vec![good()]), Some(owner("o"))), None);
        assert_eq!(code(Some(Vec::new()), Some(owner("o"))), None);
        let malformed = Some("MalformedACLError".to_owned());
        assert_eq!(code(Some(vec![good()]), None), malformed);
        assert_eq!(code(None, Some(owner("o"))), malformed);
        let many = vec![good(); GRANTS + 1];
        assert_eq!(code(Some(many), Some(owner("o"))), malformed);
        for (bad, expected) in [
            (
                grant(grantee(Some("a"), None, None), "EAT"),
                "MalformedACLError",
            ),
            (
                grant(grantee(None, None, None), "READ"),
                "MalformedACLError",
            ),
            (grant(group_by_id(), "READ"), "MalformedACLError"),
            (
                grant(grantee(Some("a"), Some("u"), None), "READ"),
                "MalformedACLError",
            ),
            (
                grant(grantee(None, Some("u"), None), "READ"),
                "InvalidArgument",
            ),
            (
                grant(grantee(None, None, Some("e")), "READ"),
                "MethodNotAllowed",
            ),
        ] {
            let found = code(Some(vec![bad]), Some(owner("o")));
            assert_eq!(found.as_deref(), Some(expected));
        }
    }
}
