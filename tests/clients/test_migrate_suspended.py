"""coffer migrate --delete where the target's bucket has kept versions, and keeps none any more."""


def versions(s3, bucket):
    answer = s3.list_object_versions(Bucket=bucket)
    rows = answer.get("Versions", []) + answer.get("DeleteMarkers", [])
    return sorted((row["Key"], row["VersionId"]) for row in rows)


def set_versioning(s3, bucket, status):
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": status})


def test_what_came_is_deleted_by_its_id_and_no_other(migrator, old, s3):
    bucket = "keeps-versions-no-more"
    for client in (old, s3):
        client.create_bucket(Bucket=bucket)
    set_versioning(s3, bucket, "Enabled")
    old.put_object(Bucket=bucket, Key="kept", Body=b"kept")
    old.put_object(Bucket=bucket, Key="with-id", Body=b"id")
    migrator.migrate("--bucket", bucket)
    set_versioning(s3, bucket, "Suspended")
    old.put_object(Bucket=bucket, Key="null", Body=b"null")
    migrator.migrate("--bucket", bucket)
    # Another's, of the same bytes, in front of what came.
    other = s3.put_object(Bucket=bucket, Key="with-id", Body=b"id")
    assert other.get("VersionId", "null") == "null"
    before = versions(s3, bucket)
    for key in ("with-id", "null"):
        old.delete_object(Bucket=bucket, Key=key)
    run = migrator.migrate("--bucket", bucket, "--delete")
    assert run.buckets[bucket]["deleted"] == 2
    gone = [row for row in before if row not in versions(s3, bucket)]
    assert [key for key, _ in gone] == ["null", "with-id"] and gone[1][1] != "null"
    assert len(versions(s3, bucket)) == 2, "a delete marker was put"
    assert s3.get_object(Bucket=bucket, Key="with-id")["Body"].read() == b"id"
