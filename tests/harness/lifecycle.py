"""Lifecycle rules, as tests set them."""


def rule(name="r", where=None, **actions):
    """A rule that is in force, for all objects unless told otherwise."""
    return {"ID": name, "Status": "Enabled", "Filter": where or {"Prefix": ""}} | actions


def set_rules(s3, bucket, *rules):
    """Sets the rules of a bucket."""
    configuration = {"Rules": list(rules)}
    s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration=configuration)


def put(s3, bucket, *names, body=b"a", **options):
    """Puts objects of these names, and gives the answers."""
    return [s3.put_object(Bucket=bucket, Key=name, Body=body, **options) for name in names]
