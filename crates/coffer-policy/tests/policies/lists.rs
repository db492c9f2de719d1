//! Access control lists: what each canned one grants, and what an owner of objects changes.

use coffer_policy::{
    Acl, AclRefusal, Action, CannedAcl, Grant, Grantee, Group, Identity, ObjectOwnership,
    Permission, PublicAccessBlock, Request, Requester, Resource, Shared, Sharing, SubjectId,
    Timestamp, decide, limits,
};

use crate::server::id_of;

/// A bucket of `owner`, with an object of `ann`, whose lists count.
struct Lists {
    bucket: Acl,
    object: Option<Acl>,
    ownership: ObjectOwnership,
    block: PublicAccessBlock,
}

fn canned(bucket: CannedAcl, object: CannedAcl) -> Lists {
    let (owner, ann) = (id_of("owner"), id_of("ann"));
    Lists {
        bucket: bucket.grants(Some(&owner), Some(&owner)),
        object: Some(object.grants(Some(&ann), Some(&owner))),
        ownership: ObjectOwnership::ObjectWriter,
        block: PublicAccessBlock::default(),
    }
}

impl Lists {
    fn shares(&self, who: &str, action: Action) -> bool {
        let id = id_of(who);
        let identity = Identity {
            id: id.as_str(),
            name: who,
            owns_bucket: who == "owner",
        };
        let sharing = Sharing {
            policy: None,
            bucket_acl: &self.bucket,
            object_acl: self.object.as_ref(),
            ownership: self.ownership,
            block: self.block,
        };
        let request = Request {
            requester: match who {
                "anonymous" => Requester::Anonymous,
                _ => Requester::Subject(identity),
            },
            action,
            resource: Resource::Object("a"),
            time: Timestamp::from_seconds(0),
            values: &coffer_policy::NoValues,
        };
        match decide(&sharing, &request) {
            Shared::ByAcl => true,
            Shared::Unshared => false,
            other => panic!("no policy says {other:?}"),
        }
    }

    /// Which of the four may do it: `owner`, `ann`, `bob`, `anonymous`, by their first letters; the
    /// last is `*`.
    fn who_may(&self, action: Action) -> String {
        let all = [
            ("owner", 'o'),
            ("ann", 'a'),
            ("bob", 'b'),
            ("anonymous", '*'),
        ];
        let may = all.iter().filter(|(who, _)| self.shares(who, action));
        may.map(|(_, letter)| *letter).collect()
    }
}

#[test]
fn canned_lists_on_buckets_grant_as_documented() {
    for (canned_acl, list, write, read_acl, write_acl) in [
        (CannedAcl::Private, "o", "o", "o", "o"),
        (CannedAcl::PublicRead, "oab*", "o", "o", "o"),
        (CannedAcl::PublicReadWrite, "oab*", "oab*", "o", "o"),
        (CannedAcl::AwsExecRead, "o", "o", "o", "o"),
        (CannedAcl::AuthenticatedRead, "oab", "o", "o", "o"),
        (CannedAcl::BucketOwnerRead, "o", "o", "o", "o"),
        (CannedAcl::BucketOwnerFullControl, "o", "o", "o", "o"),
        (CannedAcl::LogDeliveryWrite, "o", "o", "o", "o"),
    ] {
        let mut lists = canned(canned_acl, CannedAcl::Private);
        lists.object = None;
        assert_eq!(lists.who_may(Action::ListBucket), list, "{canned_acl:?}");
        assert_eq!(
            lists.who_may(Action::ListBucketVersions),
            list,
            "{canned_acl:?}"
        );
        assert_eq!(
            lists.who_may(Action::ListBucketMultipartUploads),
            list,
            "{canned_acl:?}"
        );
        assert_eq!(lists.who_may(Action::PutObject), write, "{canned_acl:?}");
        assert_eq!(
            lists.who_may(Action::GetBucketAcl),
            read_acl,
            "{canned_acl:?}"
        );
        assert_eq!(
            lists.who_may(Action::PutBucketAcl),
            write_acl,
            "{canned_acl:?}"
        );
    }
}

#[test]
fn canned_lists_on_objects_grant_as_documented() {
    for (canned_acl, read, read_acl) in [
        (CannedAcl::Private, "a", "a"),
        (CannedAcl::PublicRead, "oab*", "a"),
        (CannedAcl::PublicReadWrite, "oab*", "a"),
        (CannedAcl::AuthenticatedRead, "oab", "a"),
        (CannedAcl::BucketOwnerRead, "oa", "a"),
        (CannedAcl::BucketOwnerFullControl, "oa", "oa"),
    ] {
        let lists = canned(CannedAcl::Private, canned_acl);
        assert_eq!(lists.who_may(Action::GetObject), read, "{canned_acl:?}");
        assert_eq!(
            lists.who_may(Action::GetObjectVersion),
            read,
            "{canned_acl:?}"
        );
        assert_eq!(
            lists.who_may(Action::GetObjectAcl),
            read_acl,
            "{canned_acl:?}"
        );
        assert_eq!(
            lists.who_may(Action::PutObjectVersionAcl),
            read_acl,
            "{canned_acl:?}"
        );
    }
}

#[test]
fn writers_make_objects_and_do_not_replace_those_of_others() {
    let mut lists = canned(CannedAcl::PublicReadWrite, CannedAcl::PublicReadWrite);
    assert_eq!(lists.who_may(Action::PutObject), "oa", "the two owners");
    assert_eq!(lists.who_may(Action::DeleteObject), "oa");
    assert_eq!(lists.who_may(Action::DeleteObjectVersion), "o");
    lists.object = None;
    assert_eq!(lists.who_may(Action::PutObject), "oab*");
    assert_eq!(lists.who_may(Action::DeleteObject), "o");
}

#[test]
fn what_no_list_can_grant_none_grants() {
    let lists = canned(CannedAcl::PublicReadWrite, CannedAcl::PublicReadWrite);
    for action in [
        Action::GetBucketPolicy,
        Action::PutBucketPolicy,
        Action::DeleteBucket,
        Action::PutObjectRetention,
        Action::BypassGovernanceRetention,
        Action::GetObjectTagging,
        Action::ListAllMyBuckets,
    ] {
        assert_eq!(lists.who_may(action), "", "{action}");
    }
}

#[test]
fn grants_name_subjects_and_owners_keep_their_list() {
    let grant = |name: &str, permission| Grant {
        grantee: Grantee::Subject(id_of(name)),
        permission,
    };
    let mut lists = canned(CannedAcl::Private, CannedAcl::Private);
    let grants = vec![grant("bob", Permission::ReadAcp)];
    lists.object = Some(Acl::new(Some(id_of("ann")), grants).unwrap());
    assert_eq!(lists.who_may(Action::GetObjectAcl), "ab");
    assert_eq!(
        lists.who_may(Action::PutObjectAcl),
        "a",
        "she can grant herself all again"
    );
    assert_eq!(lists.who_may(Action::GetObject), "");
    // An object of who was anonymous has no owner among those who ask.
    lists.object = Some(CannedAcl::Private.grants(None, Some(&id_of("owner"))));
    assert_eq!(lists.who_may(Action::PutObjectAcl), "");
}

#[test]
fn where_the_buckets_owner_is_enforced_lists_do_not_count() {
    let mut lists = canned(CannedAcl::PublicReadWrite, CannedAcl::PublicRead);
    lists.ownership = ObjectOwnership::BucketOwnerEnforced;
    for action in [Action::GetObject, Action::ListBucket, Action::PutObject] {
        assert_eq!(lists.who_may(action), "", "{action}");
    }
}

#[test]
fn ignored_public_grants_leave_the_others() {
    let mut lists = canned(CannedAcl::AuthenticatedRead, CannedAcl::PublicRead);
    lists.block.ignore_public_acls = true;
    assert_eq!(lists.who_may(Action::ListBucket), "o");
    assert_eq!(lists.who_may(Action::GetObject), "a");
    let shown = lists.block.effective_acl(&lists.bucket);
    assert!(!shown.is_public() && shown.grants().len() == 1);
}

#[test]
fn lists_are_refused_where_they_do_not_count_or_are_public() {
    let (owner, ann) = (id_of("owner"), id_of("ann"));
    let enforced = ObjectOwnership::BucketOwnerEnforced;
    let of_ann = |canned: CannedAcl| canned.grants(Some(&ann), Some(&owner));
    let of_owner = |canned: CannedAcl| canned.grants(Some(&owner), Some(&owner));
    let check = |acl: &Acl| enforced.check_acl(acl, Some(&owner));
    assert_eq!(check(&of_owner(CannedAcl::Private)), Ok(()));
    assert_eq!(check(&of_owner(CannedAcl::BucketOwnerFullControl)), Ok(()));
    for refused in [CannedAcl::PublicRead, CannedAcl::LogDeliveryWrite] {
        assert_eq!(check(&of_owner(refused)), Err(AclRefusal::NotSupported));
        let making = enforced.check_bucket_acl(&of_owner(refused));
        assert_eq!(making, Err(AclRefusal::WithOwnership));
        assert_eq!(
            ObjectOwnership::ObjectWriter.check_acl(&of_ann(refused), None),
            Ok(())
        );
        let making = ObjectOwnership::BucketOwnerPreferred.check_bucket_acl(&of_owner(refused));
        assert_eq!(making, Ok(()));
    }
    assert_eq!(
        check(&of_ann(CannedAcl::Private)),
        Err(AclRefusal::NotSupported)
    );
    assert_eq!(
        enforced.check_bucket_acl(&of_owner(CannedAcl::Private)),
        Ok(())
    );

    let reading = Grant {
        grantee: Grantee::Subject(owner.clone()),
        permission: Permission::Read,
    };
    for grants in [vec![reading], Vec::new()] {
        let less = Acl::new(Some(owner.clone()), grants).unwrap();
        assert_eq!(
            check(&less),
            Err(AclRefusal::NotSupported),
            "not full control"
        );
        assert_eq!(
            enforced.check_bucket_acl(&less),
            Ok(()),
            "nothing to others"
        );
    }

    let public = of_ann(CannedAcl::AuthenticatedRead);
    assert_eq!(
        PublicAccessBlock::ALL.check_acl(&public),
        Err(AclRefusal::Public)
    );
    assert_eq!(PublicAccessBlock::default().check_acl(&public), Ok(()));
    let private = of_ann(CannedAcl::LogDeliveryWrite);
    assert_eq!(PublicAccessBlock::ALL.check_acl(&private), Ok(()));
}

#[test]
fn new_objects_belong_to_whom_the_bucket_says() {
    let (owner, ann) = (id_of("owner"), id_of("ann"));
    let new = |ownership: ObjectOwnership, canned| -> Option<SubjectId> {
        ownership
            .owner_of_new(Some(&ann), Some(&owner), canned)
            .cloned()
    };
    let handed_over = Some(CannedAcl::BucketOwnerFullControl);
    assert_eq!(
        new(ObjectOwnership::default(), None),
        Some(owner.clone()),
        "enforced"
    );
    assert_eq!(
        new(ObjectOwnership::BucketOwnerPreferred, None),
        Some(ann.clone())
    );
    assert_eq!(
        new(ObjectOwnership::BucketOwnerPreferred, handed_over),
        Some(owner.clone())
    );
    assert_eq!(
        new(ObjectOwnership::ObjectWriter, handed_over),
        Some(ann.clone())
    );
    let anonymous = ObjectOwnership::ObjectWriter.owner_of_new(None, Some(&owner), None);
    assert_eq!(anonymous, None);
}

#[test]
fn names_are_read_as_they_are_written() {
    for name in ["READ", "WRITE", "READ_ACP", "WRITE_ACP", "FULL_CONTROL"] {
        assert_eq!(
            Permission::from_name(name).map(Permission::name),
            Some(name)
        );
    }
    for name in [
        "BucketOwnerEnforced",
        "BucketOwnerPreferred",
        "ObjectWriter",
    ] {
        assert_eq!(
            ObjectOwnership::from_name(name).map(ObjectOwnership::name),
            Some(name)
        );
    }
    for group in [
        Group::AllUsers,
        Group::AuthenticatedUsers,
        Group::LogDelivery,
    ] {
        assert_eq!(Group::from_uri(group.uri()), Some(group));
    }
    assert_eq!(
        CannedAcl::from_name("bucket-owner-read"),
        Some(CannedAcl::BucketOwnerRead)
    );
    assert_eq!(CannedAcl::from_name("Private"), None);
    assert_eq!(Permission::from_name("read"), None);
    assert_eq!(
        Group::from_uri("http://acs.amazonaws.com/groups/global/NoUsers"),
        None
    );
}

#[test]
fn lists_are_bounded() {
    let grant = Grant {
        grantee: Grantee::Group(Group::AllUsers),
        permission: Permission::Read,
    };
    assert!(Acl::new(None, vec![grant.clone(); limits::GRANTS]).is_ok());
    let error = Acl::new(None, vec![grant; limits::GRANTS + 1]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "an access control list has 101 grants, more than 100"
    );
}
