//! What requests say that they ask for, while policies change.

use std::sync::Arc;

use coffer_vault::policy::{Action, Key, NoValues, Timestamp};
use coffer_vault::version::Which;
use coffer_vault::*;

use crate::door::{self, Door};

impl Door {
    /// Its subject, as it asks for this.
    fn asking(&self, action: Action, on: AskedOf, asks: Option<Asks>) -> Arc<Subject> {
        let ask = AskedAction {
            bucket: self.bucket.clone(),
            action,
            on,
        };
        Arc::new(self.subject.asking(Asked {
            actions: vec![ask],
            time: Timestamp::from_seconds(0),
            values: Arc::new(NoValues),
            asks,
        }))
    }

    /// Has a policy that asks for this key, and denies nothing to whom has no value for it.
    async fn set_policy(&self, by: &Arc<Subject>, key: &str) {
        let policy = format!(
            r#"{{"Version": "2012-10-17", "Statement": [{{"Effect": "Deny", "Principal": "*",
                "Action": "s3:GetObject", "Resource": "arn:aws:s3:::bucket/*",
                "Condition": {{"StringEquals": {{"{key}": "a"}}}}}}]}}"#
        );
        let policy = Some(policy.as_bytes());
        let set = self.vault.set_bucket_policy(by, &self.bucket, policy);
        set.await.unwrap();
    }

    async fn head(&self, reader: &Subject) -> Result<ObjectInfo> {
        let (name, options) = (door::name("object"), ReadOptions::default());
        let read = self.vault.head_object(reader, &self.bucket, &name, options);
        read.await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_for_one_policy_is_not_judged_by_one_that_asks_for_more() {
    let data = tempfile::tempdir().unwrap();
    let door = door::door(data.path()).await;
    door.put("object", &door::bytes(10)).await.unwrap();
    let asks = || door.vault.asks_of(&door.subject, door.bucket.as_str());
    assert!(asks().is_none(), "without a policy nothing is asked");

    door.set_policy(&door.subject, "aws:Referer").await;
    let (asked, object) = (asks().unwrap(), door::name("object"));
    assert_eq!(asked.keys(), Some(&[Key::Referer][..]));
    let on = AskedOf::Object(object, Which::Current);
    let reader = door.asking(Action::GetObject, on.clone(), Some(asked));
    door.head(&reader).await.unwrap();

    let owner = door.asking(Action::PutBucketPolicy, AskedOf::Bucket, None);
    door.set_policy(&owner, "aws:UserAgent").await;
    let refused = door.head(&reader).await.unwrap_err();
    let is_to_be_sent_again = matches!(
        refused,
        VaultError::Administration(AdministrationError::Sharing(SharingError::Changed))
    );
    assert!(is_to_be_sent_again, "{refused}");
    let again = door.asking(Action::GetObject, on, asks());
    door.head(&again).await.unwrap();
    door.vault.close().await;
}
