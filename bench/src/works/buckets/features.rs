//! What versions, a policy and a quota cost together: one bucket with them, one without, in the
//! same server.

use coffer_client::s3::Request;
use http::Method;
use serde_json::json;

use crate::bench::Bench;
use crate::contenders::bucket::Bucket;
use crate::contenders::coffer::Coffer;
use crate::error::{BenchError, Result};
use crate::report::figures::{Target, Work};
use crate::works::both_ways::both_ways;

const MOST: f64 = 1.08;

const FEATURED: &str = "featured";

/// Far more than a run stores, so that nothing is refused.
const QUOTA: [&str; 4] = ["--bytes", "10TB", "--objects", "1000000000"];

/// GET and PUT of 64 MiB and 4 KiB in a bucket with all three, against a plain one.
pub fn features(bench: &Bench) -> Result<Vec<Work>> {
    let folder = bench.folder("features")?;
    let client = &bench.client;
    let coffer = Coffer::start(&bench.coffer, &folder, bench.pinned, client)?;
    coffer.make_bucket(client, FEATURED)?;
    let mut quota = vec!["quota", "set", "bucket", FEATURED];
    quota.extend(QUOTA);
    coffer.command(&quota)?;
    enable_versions(&coffer, client, FEATURED)?;
    coffer.command(&["subject", "create", "reader", "--clearance", "default"])?;
    let policy = policy(&account(&coffer, client)?);
    coffer.configure(client, FEATURED, "policy", policy)?;
    let featured = Bucket {
        has_versions: true,
        ..Bucket::of(&coffer, FEATURED)
    };
    let sides = [
        ("versions, policy, quota", featured),
        ("a plain bucket", Bucket::of(&coffer, Coffer::BUCKET)),
    ];
    let (target, rounds) = (Target::RatioAtMost(MOST), 0..bench.effort.rounds);
    both_ways(bench, "all features: ", sides, target, rounds)
}

/// Lets a bucket keep versions.
pub fn enable_versions(
    coffer: &Coffer,
    client: &crate::load_client::load::Client,
    bucket: &str,
) -> Result<()> {
    let document = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    coffer.configure(client, bucket, "versioning", document.to_owned())
}

/// The server's account, as policies name it.
fn account(coffer: &Coffer, client: &crate::load_client::load::Client) -> Result<String> {
    let request = Request::of_service(Method::GET);
    let (answer, _) = client.wait(coffer.s3().document(&request))?;
    let owner = answer.child("Owner");
    let name = owner.and_then(|owner| owner.text_of("DisplayName"));
    name.map(str::to_owned).ok_or_else(|| BenchError::Http {
        what: "a list of buckets without an owner".into(),
    })
}

/// What an operator would write: who may, from where, and how at least. Each request of the load is
/// held against all of it.
fn policy(account: &str) -> String {
    let user = |name: &str| json!({"AWS": format!("arn:aws:iam::{account}:user/{name}")});
    let objects = format!("arn:aws:s3:::{FEATURED}/*");
    let all = [format!("arn:aws:s3:::{FEATURED}"), objects.clone()];
    let policy = json!({"Version": "2012-10-17", "Statement": [
        {"Sid": "Tls", "Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": all,
         "Condition": {"Bool": {"aws:SecureTransport": "false"}}},
        {"Sid": "Inside", "Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": all,
         "Condition": {"NotIpAddress": {"aws:SourceIp": ["127.0.0.0/8", "10.0.0.0/8"]}}},
        {"Sid": "Kept", "Effect": "Deny", "Principal": "*",
         "Action": ["s3:DeleteObject", "s3:DeleteObjectVersion"],
         "Resource": format!("arn:aws:s3:::{FEATURED}/archive/*")},
        {"Sid": "Sealed", "Effect": "Deny", "Principal": "*", "Action": "s3:PutObject",
         "Resource": objects,
         "Condition": {"Null": {"s3:x-amz-server-side-encryption": "false"},
             "StringNotEquals": {"s3:x-amz-server-side-encryption": ["AES256", "aws:kms"]}}},
        {"Sid": "Readers", "Effect": "Allow", "Principal": user("reader"),
         "Action": ["s3:GetObject", "s3:GetObjectVersion"], "Resource": objects},
    ]});
    policy.to_string()
}
