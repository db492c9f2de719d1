//! A real vault with the levels and subjects of a model.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use coffer_label::{Categories, Category, Rank};
use coffer_vault::record::{ListQuery, ObjectName, Precondition, Tags, UploadsQuery};
use coffer_vault::version::Which;
use coffer_vault::*;
use futures::TryStreamExt;

use crate::long_put::{LongPut, put};
use crate::model::Model;
use crate::operations::{Operation, Outcome, Wish, refusal};
use crate::requests;
use crate::start::{Label, Start, fill};

pub(crate) struct World {
    pub(crate) vault: Vault,
    pub(crate) model: Model,
    /// What is written next.
    pub(crate) sentence: String,
    access_key_ids: Vec<String>,
    pub(crate) subject_ids: Vec<String>,
    made_levels: usize,
    pub(crate) long: Option<LongPut>,
    _data: tempfile::TempDir,
}

pub(crate) const OWNER: Actor = Actor::Local { uid: 0 };

pub(crate) fn level_name(level: usize) -> String {
    if level == 0 {
        "default".into()
    } else {
        format!("level-{level}")
    }
}

pub(crate) fn bucket_name(bucket: usize) -> BucketName {
    BucketName::new(&format!("bucket-{bucket}")).unwrap()
}

pub(crate) fn subject_name(subject: usize) -> String {
    format!("subject-{subject}")
}

pub(crate) fn object_name(object: usize) -> ObjectName {
    ObjectName::new(format!("object-{object}")).unwrap()
}

pub(crate) fn vault_label(label: &Label) -> coffer_label::Label {
    let mut categories = Categories::NONE;
    for number in &label.categories {
        categories.insert(Category::new(*number).unwrap());
    }
    coffer_label::Label {
        rank: Rank::new(label.rank).unwrap(),
        categories,
    }
}

fn roles(roles: &BTreeSet<usize>) -> Roles {
    roles.iter().map(|role| Role::ALL[*role]).collect()
}

fn rights(rights: &BTreeSet<usize>) -> Rights {
    rights.iter().map(|right| Right::ALL[*right]).collect()
}

fn number(name: &str) -> usize {
    name.rsplit('-').next().unwrap().parse().unwrap()
}

impl World {
    pub(crate) async fn new(start: &Start) -> Self {
        let data = tempfile::tempdir().unwrap();
        let options = VaultOptions::new(data.path());
        let vault = Vault::open(options).await.unwrap();
        for (place, level) in start.levels.iter().enumerate() {
            let new = NewLevel {
                name: level_name(place + 1),
                label: vault_label(level),
                options: Default::default(),
                may_share_label: true,
            };
            vault.create_level(&OWNER, new).await.unwrap();
        }
        fill(&vault, start).await;
        let (mut access_key_ids, mut subject_ids) = (Vec::new(), Vec::new());
        for (place, subject) in start.subjects.iter().enumerate() {
            let new = NewSubject {
                name: subject_name(place),
                clearance: format!(
                    "{}-{}",
                    vault_label(&subject.low),
                    vault_label(&subject.high)
                ),
                roles: roles(&subject.roles),
                is_trusted: false,
                expires_ms: None,
                grants: None,
            };
            let (made, _) = vault.create_subject(&OWNER, new).await.unwrap();
            access_key_ids.push(made.keys[0].id.clone());
            subject_ids.push(made.subject.id().to_string());
        }
        Self {
            vault,
            model: Model::new(start),
            sentence: String::new(),
            access_key_ids,
            subject_ids,
            made_levels: 0,
            long: None,
            _data: data,
        }
    }

    /// Does it as a front door does: the access key first.
    pub(crate) async fn perform(&mut self, operation: &Operation) -> Outcome {
        let Operation { subject, wish } = operation;
        if let Wish::EndPut = wish {
            return self.end_put().await.unwrap_or_else(refusal);
        }
        let Some(asking) = self.vault.subject(&self.access_key_ids[*subject]) else {
            return Outcome::NoSuchAccessKey;
        };
        let asking = self.asking(asking, wish);
        let actor = Actor::Subject(asking.clone());
        let outcome = match wish {
            Wish::BeginPut { bucket, object } => self.begin_put(asking, *bucket, *object).await,
            Wish::SetPolicy { bucket, statements } => {
                self.set_policy(&asking, *bucket, statements).await
            }
            Wish::SetLists { bucket, readers } => {
                self.set_lists(&asking, wish, (*bucket, readers.as_ref()))
                    .await
            }
            Wish::Settle { whom } => {
                let name = subject_name(*whom);
                let settled = self.vault.settle_subject(&actor, &name).await;
                settled.map(|_| Outcome::Done)
            }
            Wish::Put { .. }
            | Wish::Get { .. }
            | Wish::Head { .. }
            | Wish::Delete { .. }
            | Wish::List { .. }
            | Wish::Copy { .. }
            | Wish::SetTags { .. }
            | Wish::Upload { .. }
            | Wish::ListUploads { .. } => self.on_data(&asking, wish).await,
            Wish::CreateBucket { .. }
            | Wish::DeleteBucket { .. }
            | Wish::HeadBucket { .. }
            | Wish::ListBuckets => self.on_bucket(&asking, wish).await,
            _ => self.administer(&actor, wish).await,
        };
        outcome.unwrap_or_else(refusal)
    }

    async fn on_data(&self, subject: &Subject, wish: &Wish) -> Result<Outcome> {
        let vault = &self.vault;
        match *wish {
            Wish::Put { bucket, object } => {
                let content = self.sentence.clone();
                let put = put(object, content);
                vault.put_object(subject, &bucket_name(bucket), put).await?;
            }
            Wish::Get { bucket, object } => {
                let options = ReadOptions::default();
                let (bucket, name) = (bucket_name(bucket), object_name(object));
                let read = vault.read_object(subject, &bucket, &name, options).await?;
                let parts: Vec<Bytes> = read.body.try_collect().await?;
                let text = String::from_utf8(parts.concat()).unwrap();
                return Ok(Outcome::Content(text));
            }
            Wish::Head { bucket, object } => {
                let options = ReadOptions::default();
                let (bucket, name) = (bucket_name(bucket), object_name(object));
                vault.head_object(subject, &bucket, &name, options).await?;
            }
            Wish::Delete { bucket, object } => {
                let (bucket, name) = (bucket_name(bucket), object_name(object));
                let delete = DeleteObject {
                    name,
                    which: Which::Current,
                    precondition: Precondition::None,
                    only_if: Default::default(),
                    bypasses_governance: false,
                };
                vault.delete_object(subject, &bucket, delete).await?;
            }
            _ => return self.on_listings_and_copies(subject, wish).await,
        }
        Ok(Outcome::Done)
    }

    async fn on_listings_and_copies(&self, subject: &Subject, wish: &Wish) -> Result<Outcome> {
        let vault = &self.vault;
        match *wish {
            Wish::List { bucket } => {
                let query = ListQuery {
                    limit: 100,
                    ..ListQuery::default()
                };
                let page = vault
                    .list_objects(subject, &bucket_name(bucket), query)
                    .await?;
                let numbers = page.objects.iter().map(|found| number(found.name.expose()));
                return Ok(Outcome::Objects(numbers.collect()));
            }
            Wish::Copy {
                from,
                object,
                to,
                name,
            } => {
                let (source, target) = requests::copy((from, object), name);
                let to = bucket_name(to);
                vault.copy_object(subject, source, &to, target).await?;
            }
            Wish::SetTags { bucket, object } => {
                let (bucket, name) = (bucket_name(bucket), object_name(object));
                let tags = Tags::new();
                vault
                    .set_object_tags(subject, &bucket, (&name, Which::Current), tags)
                    .await?;
            }
            Wish::Upload { bucket } => {
                vault
                    .create_upload(subject, &bucket_name(bucket), requests::upload())
                    .await?;
            }
            Wish::ListUploads { bucket } => {
                let query = UploadsQuery::default();
                vault
                    .list_uploads(subject, &bucket_name(bucket), query)
                    .await?;
            }
            _ => unreachable!("not on data"),
        }
        Ok(Outcome::Done)
    }

    async fn on_bucket(&self, subject: &Arc<Subject>, wish: &Wish) -> Result<Outcome> {
        let vault = &self.vault;
        match *wish {
            Wish::CreateBucket { bucket, level } => {
                let level = level_name(level);
                let name = bucket_name(bucket);
                vault.create_bucket(subject, &name, Some(&level)).await?;
            }
            Wish::DeleteBucket { bucket } => {
                vault.delete_bucket(subject, &bucket_name(bucket)).await?;
            }
            Wish::HeadBucket { bucket } => {
                vault.bucket(subject, &bucket_name(bucket)).await?;
            }
            Wish::ListBuckets => {
                let found = vault.buckets(subject).await?;
                let numbers = found.iter().map(|info| number(info.name.as_str()));
                return Ok(Outcome::Buckets(numbers.collect()));
            }
            _ => unreachable!("not on buckets"),
        }
        Ok(Outcome::Done)
    }

    async fn administer(&mut self, actor: &Actor, wish: &Wish) -> Result<Outcome> {
        let change = SubjectChange::default();
        let (whom, change) = match wish {
            Wish::ProvideBucket { .. } | Wish::WithdrawBucket { .. } | Wish::CreateLevel => {
                return self.provide(actor, wish).await;
            }
            Wish::Grant {
                whom,
                bucket,
                rights: granted,
            } => {
                let grant = vec![(bucket_name(*bucket), rights(granted))];
                (whom, SubjectChange { grant, ..change })
            }
            Wish::Revoke { whom, bucket } => {
                let revoke = vec![bucket_name(*bucket)];
                (whom, SubjectChange { revoke, ..change })
            }
            Wish::AllBuckets { whom } => {
                let all_buckets = true;
                (
                    whom,
                    SubjectChange {
                        all_buckets,
                        ..change
                    },
                )
            }
            Wish::Roles { whom, roles: given } => {
                let roles = Some(roles(given));
                (whom, SubjectChange { roles, ..change })
            }
            Wish::Clearance { whom, low, high } => {
                let clearance = Some(format!("{}..{}", level_name(*low), level_name(*high)));
                (
                    whom,
                    SubjectChange {
                        clearance,
                        ..change
                    },
                )
            }
            Wish::Switch { whom, disabled } => {
                let is_disabled = Some(*disabled);
                (
                    whom,
                    SubjectChange {
                        is_disabled,
                        ..change
                    },
                )
            }
            Wish::Trust { whom, trusted } => {
                let is_trusted = Some(*trusted);
                (
                    whom,
                    SubjectChange {
                        is_trusted,
                        ..change
                    },
                )
            }
            _ => unreachable!("not administration"),
        };
        let name = subject_name(*whom);
        let changed = self.vault.change_subject(actor, &name, change, true);
        let changed = changed.await;
        changed.map(|_| Outcome::Done)
    }

    async fn provide(&mut self, actor: &Actor, wish: &Wish) -> Result<Outcome> {
        match wish {
            Wish::ProvideBucket { bucket, level } => {
                let (name, level) = (bucket_name(*bucket), level_name(*level));
                let made = self.vault.provide_bucket(actor, &name, Some(&level)).await;
                made.map(|_| Outcome::Done)
            }
            Wish::WithdrawBucket { bucket } => {
                let gone = self
                    .vault
                    .withdraw_bucket(actor, &bucket_name(*bucket))
                    .await;
                gone.map(|()| Outcome::Done)
            }
            Wish::CreateLevel => {
                self.made_levels += 1;
                let new = NewLevel {
                    name: format!("made-{}", self.made_levels),
                    label: coffer_label::Label::LOWEST,
                    options: Default::default(),
                    may_share_label: true,
                };
                return self
                    .vault
                    .create_level(actor, new)
                    .await
                    .map(|_| Outcome::Done);
            }
            _ => unreachable!("not for everybody"),
        }
    }
}
