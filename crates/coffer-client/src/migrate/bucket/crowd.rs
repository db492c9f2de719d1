//! Many names at once. What may hold for all of them is not told of each: it is found out whether
//! it does, and ends them then.

use std::sync::Arc;

use tokio::task::{JoinError, JoinSet};

use crate::limits::ROOMLESS;
use crate::migrate::Migration;
use crate::migrate::error::{MigrateError, Reach};
use crate::migrate::name::{Held, Work};
use crate::migrate::place::Place;
use crate::mover::MoverError;

/// Names that are worked on.
pub(super) struct Crowd {
    migration: Arc<Migration>,
    place: Arc<Place>,
    tasks: JoinSet<Result<bool, Box<Held>>>,
    /// What found no room at the target, since the last one that did.
    roomless: Vec<Held>,
}

impl Crowd {
    pub(super) fn new(migration: &Arc<Migration>, place: &Arc<Place>) -> Self {
        Self {
            migration: Arc::clone(migration),
            place: Arc::clone(place),
            tasks: JoinSet::new(),
            roomless: Vec::new(),
        }
    }

    /// Begins a name, when there is room for it.
    ///
    /// # Errors
    /// What holds for all that is left.
    pub(super) async fn add(&mut self, work: Work) -> Result<(), MigrateError> {
        while let Some(done) = self.tasks.try_join_next() {
            self.take(done).await?;
        }
        while self.tasks.len() >= self.migration.options.jobs {
            self.next().await?;
        }
        let (migration, place) = (Arc::clone(&self.migration), Arc::clone(&self.place));
        self.tasks
            .spawn(async move { migration.name(&place, work).await });
        Ok(())
    }

    async fn next(&mut self) -> Result<(), MigrateError> {
        match self.tasks.join_next().await {
            Some(done) => self.take(done).await,
            None => Ok(()),
        }
    }

    async fn take(
        &mut self,
        done: Result<Result<bool, Box<Held>>, JoinError>,
    ) -> Result<(), MigrateError> {
        match done {
            Ok(Ok(false)) => {}
            Ok(Ok(true)) => self.release_roomless(),
            Ok(Err(held)) => return self.met(*held).await,
            Err(_) => {
                self.place.count(|tally| tally.missing += 1);
                let lost = MigrateError::from(MoverError::Lost);
                self.migration.missing(&self.place.text, &lost);
            }
        }
        Ok(())
    }

    async fn met(&mut self, held: Held) -> Result<(), MigrateError> {
        match held.error.reach() {
            Reach::All => Err(held.error.ending("")),
            Reach::Room if self.roomless.len() + 1 >= ROOMLESS => {
                Err(held.error.ending("the target: "))
            }
            Reach::Room => {
                self.roomless.push(held);
                Ok(())
            }
            Reach::One | Reach::Asked | Reach::Bucket => {
                match self.migration.of_all(&self.place).await {
                    Some(ended) => Err(ended),
                    None => {
                        self.release(held);
                        Ok(())
                    }
                }
            }
        }
    }

    fn release_roomless(&mut self) {
        for held in std::mem::take(&mut self.roomless) {
            self.release(held);
        }
    }

    fn release(&mut self, held: Held) {
        let (migration, place) = (Arc::clone(&self.migration), Arc::clone(&self.place));
        self.tasks
            .spawn(async move { migration.go_on(&place, held).await });
    }

    /// Waits for all that was begun, unless what met the walk, or one of it, holds for all.
    pub(super) async fn end<T>(
        mut self,
        walked: Result<T, MigrateError>,
    ) -> Result<T, MigrateError> {
        let walked = match walked {
            Err(ended) if ended.reach() != Reach::One => Err(ended.ending("")),
            walked => self.all().await.and(walked),
        };
        self.tasks.shutdown().await;
        walked
    }

    async fn all(&mut self) -> Result<(), MigrateError> {
        loop {
            while !self.tasks.is_empty() {
                self.next().await?;
            }
            if self.roomless.is_empty() {
                return Ok(());
            }
            self.release_roomless();
        }
    }
}

impl Migration {
    /// What holds for all that is left of a bucket, if both services, asked for what they would
    /// give at any time, say so.
    pub(in crate::migrate) async fn of_all(&self, place: &Place) -> Option<MigrateError> {
        let source = place.client.as_ref();
        let target = Some(&self.target).filter(|_| place.is_there);
        for (client, bucket, prefix, side) in [
            (source, &place.from, "", "the source: "),
            (target, &place.to, place.prefix.as_str(), "the target: "),
        ] {
            let Some(client) = client else { continue };
            if let Err(error) = client.list_objects(bucket, prefix, Some("/"), None).await {
                let error = MigrateError::from(error);
                if error.reach() != Reach::One {
                    return Some(error.ending(side));
                }
            }
        }
        None
    }
}
