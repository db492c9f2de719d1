"""Access control lists, and who owns what, as tests ask for them and are told of them."""

FULL = "FULL_CONTROL"
ALL_USERS = "http://acs.amazonaws.com/groups/global/AllUsers"
AUTHENTICATED = "http://acs.amazonaws.com/groups/global/AuthenticatedUsers"
NO_BLOCKS = {
    "BlockPublicAcls": False,
    "IgnorePublicAcls": False,
    "BlockPublicPolicy": False,
    "RestrictPublicBuckets": False,
}


def owner_of(s3, bucket):
    return s3.get_bucket_acl(Bucket=bucket)["Owner"]


def id_of(client):
    """The canonical user id of who a client signs as."""
    return client.list_buckets()["Owner"]["ID"]


def listed(owner, permission=FULL):
    grantee = {"Type": "CanonicalUser", "ID": owner}
    return {
        "Owner": {"ID": owner},
        "Grants": [{"Grantee": grantee, "Permission": permission}],
    }


def controls(ownership):
    return {"Rules": [{"ObjectOwnership": ownership}]}


def own(client, bucket, ownership):
    client.put_bucket_ownership_controls(Bucket=bucket, OwnershipControls=controls(ownership))


def block(client, bucket, *names):
    """Sets these blocks, and no other."""
    blocks = NO_BLOCKS | dict.fromkeys(names, True)
    client.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=blocks)


def told(answer):
    """The grants of an answer: pairs of an id or a group's last word, and a permission."""

    def name(grantee):
        return grantee.get("ID") or grantee["URI"].rsplit("/")[-1]

    return sorted((name(grant["Grantee"]), grant["Permission"]) for grant in answer["Grants"])
