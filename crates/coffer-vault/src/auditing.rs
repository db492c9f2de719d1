//! The audit log as auditors see it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use coffer_audit::{AuditError, Outcome, Reader, Record, Recorded, Report};
use futures::Stream;
use futures::stream::unfold;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::actor::Actor;
use crate::audit::Audit;
use crate::counters::add;
use crate::error::{Result, VaultError};
use crate::limits::{AUDIT_FOLLOW_PAUSE, AUDIT_PAGE, AUDIT_RECORDS_WAITING};
use crate::manage::blocking;
use crate::recording::Facts;
use crate::roles::Role;
use crate::vault::Vault;
use crate::watch::show_name;

/// Which records of the audit log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// From this record on; from the first one by default.
    pub from: Option<u64>,
    /// Of those, only so many at the end.
    pub last: Option<u64>,
    /// Not only those that are there, but also those that come.
    pub follow: bool,
}

/// What reading the audit log gives.
#[derive(Clone, Debug)]
pub enum AuditItem {
    /// A record.
    Record(Box<Record>),
    /// The rest of a segment can't be read: what is wrong with it. Verifying says more.
    Unreadable(String),
    /// Nothing has come for a moment.
    Idle,
}

impl Vault {
    /// Records of the audit log, in their order. An auditor's.
    ///
    /// # Errors
    /// [`VaultError::AccessDenied`], [`VaultError::AuditUnavailable`].
    pub async fn audit_records(
        &self,
        actor: &Actor,
        query: AuditQuery,
    ) -> Result<impl Stream<Item = AuditItem> + Send + use<>> {
        let audit = self.audit_for(actor, "audit.read").await?;
        self.noted("audit.read", actor, Outcome::Done, &Facts::new());
        let log = audit.log().ok_or(VaultError::ShuttingDown)?;
        let until = log.last().sequence;
        let from = query.from.unwrap_or(1).max(1);
        let from = match query.last {
            Some(last) => from.max((until + 1).saturating_sub(last)),
            None => from,
        };
        let (items, received) = channel(AUDIT_RECORDS_WAITING);
        let reading = Reading {
            vault: self.clone(),
            actor: actor.clone(),
            items,
            until: (!query.follow).then_some(until),
        };
        tokio::spawn(reading.run(log.reader(from)));
        let next = |mut received: Receiver<AuditItem>| async {
            received.recv().await.map(|item| (item, received))
        };
        Ok(unfold(received, next))
    }

    /// Verifies all of the audit log, and that it has the record `wanted`. An auditor's.
    ///
    /// # Errors
    /// As [`Vault::audit_records`].
    pub async fn verify_audit(&self, actor: &Actor, wanted: Option<Recorded>) -> Result<Report> {
        const ACT: &str = "audit.verify";
        let audit = self.audit_for(actor, ACT).await?;
        let report = blocking(move || {
            let log = audit.log().ok_or(VaultError::ShuttingDown)?;
            log.verify(audit.public_key(), wanted.as_ref())
                .map_err(VaultError::AuditUnavailable)
        })
        .await?;
        let outcome = match report.is_sound() {
            true => Outcome::Done,
            false => Outcome::Failed,
        };
        let last = report.last.sequence.to_string();
        self.noted(ACT, actor, outcome, &Facts::from([("through", last)]));
        Ok(report)
    }

    /// The log, opened, for an auditor.
    async fn audit_for(&self, actor: &Actor, act: &'static str) -> Result<Arc<Audit>> {
        if !actor.has(Role::Auditor) {
            add(&self.inner.tally.denied_count, 1);
            self.denied(act, actor, &Facts::new());
            return Err(VaultError::AccessDenied);
        }
        let audit = self.inner.audit.clone();
        blocking(move || audit.log_or_open().map(drop)).await?;
        Ok(self.inner.audit.clone())
    }
}

/// Reads for one who listens.
struct Reading {
    vault: Vault,
    actor: Actor,
    items: Sender<AuditItem>,
    /// The last record to read; without one, it goes on.
    until: Option<u64>,
}

/// Whoever listens has gone away, or has heard all.
struct Over;

impl Reading {
    async fn run(self, mut reader: Reader) {
        loop {
            let inner = self.vault.inner.clone();
            let read = tokio::task::spawn_blocking(move || {
                let mut page = page(&mut reader);
                for record in &mut page.records {
                    show_name(&inner.keystore, record);
                }
                (reader, page)
            });
            let Ok((reader_again, page)) = read.await else {
                return;
            };
            reader = reader_again;
            if self.tell(page).await.is_err() {
                return;
            }
        }
    }

    async fn tell(&self, page: Page) -> Result<(), Over> {
        let is_empty = page.records.is_empty() && page.problem.is_none();
        for record in page.records {
            if self.until.is_some_and(|until| record.sequence > until) {
                return Err(Over);
            }
            self.send(AuditItem::Record(Box::new(record))).await?;
        }
        match page.problem {
            Some(error @ AuditError::Unreadable { .. }) => {
                self.send(AuditItem::Unreadable(error.to_string())).await?;
            }
            Some(error) => {
                self.send(AuditItem::Unreadable(error.to_string())).await?;
                return Err(Over);
            }
            None => {}
        }
        if !is_empty {
            return Ok(());
        }
        let is_closed = self.vault.inner.closed.load(Ordering::Acquire);
        if self.until.is_some() || is_closed {
            return Err(Over);
        }
        tokio::time::sleep(AUDIT_FOLLOW_PAUSE).await;
        self.send(AuditItem::Idle).await
    }

    async fn send(&self, item: AuditItem) -> Result<(), Over> {
        // Whoever is no auditor any more has lost the standing that it asked with.
        if matches!(&self.actor, Actor::Subject(subject) if subject.standing.is_cut()) {
            return Err(Over);
        }
        self.items.send(item).await.map_err(|_| Over)
    }
}

/// Some records, and why there are no more.
struct Page {
    records: Vec<Record>,
    problem: Option<AuditError>,
}

fn page(reader: &mut Reader) -> Page {
    let mut page = Page {
        records: Vec::new(),
        problem: None,
    };
    while page.records.len() < AUDIT_PAGE {
        match reader.next() {
            Ok(Some(record)) => page.records.push(record),
            Ok(None) => break,
            Err(error) => {
                page.problem = Some(error);
                break;
            }
        }
    }
    page
}
