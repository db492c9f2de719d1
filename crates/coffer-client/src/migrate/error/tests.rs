//! For how much an error holds.

use std::io::ErrorKind;

use super::*;

#[test]
fn what_holds_for_more_than_one() {
    let refused = |status, code| MigrateError::from(S3Error::refused(status, code));
    for (status, code, reach) in [
        (403, "AccessDenied", Reach::One),
        (401, "Unauthorized", Reach::Asked),
        (500, "InternalError", Reach::Asked),
        (404, "NoSuchKey", Reach::One),
        (403, "InvalidAccessKeyId", Reach::Asked),
        (403, "SignatureDoesNotMatch", Reach::Asked),
        (503, "ServiceUnavailable", Reach::Asked),
        (404, "NoSuchBucket", Reach::Bucket),
        (507, "StorageFull", Reach::Room),
        (403, "QuotaExceeded", Reach::Room),
    ] {
        assert_eq!(refused(status, code).reach(), reach, "{code}");
    }
    let local = |kind: ErrorKind| MigrateError::local("writing", Path::new("x"))(kind.into());
    assert_eq!(local(ErrorKind::StorageFull).reach(), Reach::All);
    assert_eq!(local(ErrorKind::PermissionDenied).reach(), Reach::One);
    let unreachable = MigrateError::from(ClientError::Unreachable {
        endpoint: String::new(),
        problem: String::new(),
        may_pass: true,
    });
    assert_eq!(unreachable.reach(), Reach::Asked);
}
