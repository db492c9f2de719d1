//! The lists of both sides of a bucket, name by name.

use std::sync::atomic::Ordering::Relaxed;

use super::emptied::Doubts;
use crate::migrate::Migration;
use crate::migrate::error::MigrateError;
use crate::migrate::ledger::LEDGERS;
use crate::migrate::names::{Files, Kinds, Links, Listed, Name, Names, Next};
use crate::migrate::place::{Place, Versioning};
use crate::migrate::plan::Both;
use crate::migrate::report::Line;
use crate::migrate::settings::LINKS;
use crate::mover::Event;

impl Migration {
    /// The lists of both sides.
    pub(super) fn lists(&self, place: &Place) -> (Names, Names) {
        let source = match (&place.client, &place.folder) {
            (Some(client), _) => {
                let kinds = Kinds::of(client.endpoint().host());
                let side = ("the source", place.lists_versions(), kinds);
                let listed = Listed::new(client, &place.from, "", side);
                Names::Bucket(Box::new(listed))
            }
            (None, Some(folder)) => {
                let (ledgers, asks) = (self.options.state.join(LEDGERS), self.asks_of_emptied());
                Names::Folder(Box::new(Files::new(folder, self.links(), &ledgers, asks)))
            }
            (None, None) => Names::None,
        };
        if !place.is_there {
            return (source, Names::None);
        }
        // What came a moment ago has the times of that moment.
        let keeps_versions = place.versioning != Versioning::Never;
        let side = ("the target", keeps_versions, Kinds::Interleaved);
        let listed = Listed::new(&self.target, &place.to, &place.prefix, side);
        (source, Names::Bucket(Box::new(listed)))
    }

    fn links(&self) -> Links {
        let passes_over = self.options.without.iter().any(|name| name == LINKS);
        match (self.options.follow_links, passes_over) {
            (true, _) => Links::Follow,
            (false, true) => Links::PassOver,
            (false, false) => Links::Tell,
        }
    }

    /// The next name of the source, which is none that has just come.
    pub(super) async fn next_from(
        &self,
        place: &Place,
        names: &mut Names,
        doubts: &mut Doubts,
    ) -> Result<Option<Name>, MigrateError> {
        let next = self.next(place, names, doubts).await?;
        if let Some(name) = &next {
            place.check_versioning(&name.versions)?;
            self.check_apart(place, name).await?;
        }
        Ok(next)
    }

    /// The next name of a list; files that are none are told.
    pub(super) async fn next(
        &self,
        place: &Place,
        names: &mut Names,
        doubts: &mut Doubts,
    ) -> Result<Option<Name>, MigrateError> {
        loop {
            match names.next().await? {
                None => return Ok(None),
                Some(Next::Name(name)) => return Ok(Some(name)),
                Some(Next::Folder(folder)) => self.folder(place, folder, doubts)?,
                Some(Next::PassedOver(name)) => {
                    name.into_iter().for_each(|name| doubts.hidden.add(name))
                }
                Some(Next::Ledgers(path, name)) => {
                    name.into_iter().for_each(|name| doubts.hidden.add(name));
                    self.tell(&Event::Note(&format!(
                        "{}: what is noted of migrations changes while this runs, and is left out",
                        path.display()
                    )));
                }
                Some(Next::Problem(problem)) => {
                    place.is_unread.store(true, Relaxed);
                    problem
                        .hides
                        .into_iter()
                        .for_each(|name| doubts.hidden.add(name));
                    place.count(|tally| tally.missing += 1);
                    self.missing(&problem.what, &problem.error);
                }
            }
        }
    }

    /// Names what is listed in no order that can be told: nothing of it is moved or deleted.
    pub(super) fn without_order(&self, place: &Place, both: &Both, error: &MigrateError) {
        // What was begun of it is needed still.
        place.ledger.listed(&both.key, &both.from);
        place.count(|tally| tally.missing += 1);
        self.missing(&format!("{}/{}", place.text, both.key), error);
        self.report.line(&Line {
            outcome: "missing",
            bucket: &place.to,
            key: &both.key,
            source_version: "",
            modified: "",
            bytes: 0,
            is_marker: false,
            target_version: None,
            checksum: None,
            proof: None,
            problem: Some(error.to_string()),
        });
    }
}
