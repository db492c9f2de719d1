//! The list of a bucket's versions, name by name.

use std::collections::VecDeque;
use std::sync::Arc;

use super::order::{Kinds, by_name, in_order};
use super::{Name, current};
use crate::limits::MIGRATE_VERSIONS;
use crate::migrate::error::MigrateError;
use crate::s3::{Client, ListedVersion, Paging};

#[derive(PartialEq, Eq, Hash)]
enum After {
    First,
    Version((String, String)),
    Object(String),
    End,
}

/// The list of a bucket's versions.
pub(in crate::migrate) struct Listed {
    client: Arc<Client>,
    bucket: String,
    prefix: String,
    side: &'static str,
    /// Whether it keeps versions: a list of objects alone would have those seem gone.
    keeps_versions: bool,
    kinds: Kinds,
    page: VecDeque<ListedVersion>,
    after: After,
    paging: Paging,
    last: Option<String>,
}

impl Listed {
    pub(in crate::migrate) fn new(
        client: &Arc<Client>,
        bucket: &str,
        prefix: &str,
        (side, keeps_versions, kinds): (&'static str, bool, Kinds),
    ) -> Self {
        Self {
            client: Arc::clone(client),
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
            side,
            keeps_versions,
            kinds,
            page: VecDeque::new(),
            after: After::First,
            paging: Paging::default(),
            last: None,
        }
    }

    pub(super) async fn next(&mut self) -> Result<Option<Name>, MigrateError> {
        let Some(first) = self.peek().await? else {
            return Ok(None);
        };
        let key = first.object.key.clone();
        let (mut pages, mut count) = (Vec::new(), 0);
        while { self.peek().await? }.is_some_and(|next| next.object.key == key) {
            let is_of_it = |it: &&ListedVersion| it.object.key == key;
            let listed = self.page.iter().take_while(is_of_it).count();
            count += listed;
            if count > MIGRATE_VERSIONS {
                let most = MIGRATE_VERSIONS;
                return Err(MigrateError::TooMany { most });
            }
            pages.push(self.page.drain(..listed).collect());
        }
        if self.last.as_ref().is_some_and(|last| *last >= key) {
            return Err(MigrateError::Disorder { side: self.side });
        }
        let mut found = in_order(pages, self.kinds);
        found.versions.reverse();
        self.last = Some(key.clone());
        let side = self.side;
        Ok(Some(Name {
            key: key.strip_prefix(&self.prefix).unwrap_or(&key).to_owned(),
            versions: found.versions,
            disorder: { found.problem }.map(|problem| MigrateError::NoOrder { side, problem }),
        }))
    }

    async fn peek(&mut self) -> Result<Option<&ListedVersion>, MigrateError> {
        while self.page.is_empty() {
            let (bucket, prefix) = (&self.bucket, &self.prefix);
            let page = match &self.after {
                After::End => break,
                After::Object(token) => {
                    let token = Some(token.as_str());
                    let page = self
                        .client
                        .list_objects(bucket, prefix, None, token)
                        .await?;
                    self.after = page.next.map_or(After::End, After::Object);
                    page.objects.into_iter().map(current).collect()
                }
                after => {
                    let from = match after {
                        After::Version(from) => Some(from),
                        _ => None,
                    };
                    match self.client.list_versions(bucket, prefix, from).await {
                        Ok(page) if page.may_lack_versions() => {
                            let problem = "does not say with which version its list goes on \
                                           (NextVersionIdMarker)";
                            return Err(self.client.unreadable(problem).into());
                        }
                        Ok(page) => {
                            self.kinds = self.kinds.seen(&page);
                            self.after = page.next.map_or(After::End, After::Version);
                            by_name(page.versions)
                        }
                        Err(error) if error.is_not_offered() && self.keeps_versions => {
                            let (side, error) = (self.side, Box::new(error));
                            return Err(MigrateError::NoList { side, error });
                        }
                        Err(error) if from.is_none() && error.is_not_offered() => {
                            let page = self.client.list_objects(bucket, prefix, None, None);
                            let page = page.await?;
                            self.after = page.next.map_or(After::End, After::Object);
                            page.objects.into_iter().map(current).collect()
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
            };
            self.page = page.into();
            let next = (self.after != After::End).then_some(&self.after);
            let names = { self.page.iter() }.map(|it| (&it.object.key, &it.version_id));
            self.paging.follow(&self.client, names, next)?;
        }
        Ok(self.page.front())
    }
}
