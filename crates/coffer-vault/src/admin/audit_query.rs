//! The audit log as auditors see it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use coffer_audit::{AuditError, Outcome, Reader, Record, Recorded, Report};
use futures::Stream;
use futures::stream::unfold;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::access::{Act, Actor, Role};
use crate::audit::{Audit, AuditFilter, Facts, Ready, show_name};
use crate::blocking::blocking;
use crate::counters::add;
use crate::error::{AdministrationError, Result, VaultError};
use crate::limits::{AUDIT_FOLLOW_PAUSE, AUDIT_PAGE, AUDIT_RECORDS_WAITING};
use crate::vault::Vault;

/// Which records of the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// From this record on; from the first one by default.
    pub from: Option<u64>,
    /// Of those, the ones that are wanted.
    pub filter: AuditFilter,
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
    /// [`AdministrationError::RoleMissing`], [`VaultError::AuditUnavailable`].
    pub async fn audit_records(
        &self,
        actor: &Actor,
        query: AuditQuery,
    ) -> Result<impl Stream<Item = AuditItem> + Send + use<>> {
        let audit = self.audit_for(actor, Act::ReadAudit).await?;
        self.noted(Act::ReadAudit, actor, Outcome::Done, &Facts::new());
        let log = audit.log().ok_or(VaultError::ShuttingDown)?;
        let until = log.last().sequence;
        let from = query.from.unwrap_or(1).max(1);
        let filter = query.filter.ready(Some(&self.inner.system));
        let from = match query.last {
            Some(last) if filter.wants_all() => from.max((until + 1).saturating_sub(last)),
            _ => from,
        };
        // What is wanted has to be counted before it is known which of it are the last.
        let counted = query.last.filter(|_| !filter.wants_all());
        let (items, received) = channel(AUDIT_RECORDS_WAITING);
        let reading = Reading {
            vault: self.clone(),
            actor: actor.clone(),
            items,
            until: (!query.follow).then_some(until),
            filter: Arc::new(filter),
        };
        let counting = counted.map(|last| (log.reader(from), until, last));
        tokio::spawn(reading.run(log.reader(from), counting));
        let next = |mut received: Receiver<AuditItem>| async {
            received.recv().await.map(|item| (item, received))
        };
        Ok(unfold(received, next))
    }

    /// Verifies all of the audit log, and that it has the record `wanted`. An auditor's.
    ///
    /// # Errors
    /// As [`Vault::audit_records`]; [`AdministrationError::AuditUnreadable`].
    pub async fn verify_audit(&self, actor: &Actor, wanted: Option<Recorded>) -> Result<Report> {
        const ACT: Act = Act::VerifyAudit;
        let audit = self.audit_for(actor, ACT).await?;
        let report = blocking(move || {
            let log = audit.log().ok_or(VaultError::ShuttingDown)?;
            let report = log.verify(audit.public_key(), wanted.as_ref());
            Ok(report.map_err(AdministrationError::of_reading)?)
        })
        .await?;
        let outcome = if report.is_sound() {
            Outcome::Done
        } else {
            Outcome::Failed
        };
        let last = report.last.sequence.to_string();
        self.noted(ACT, actor, outcome, &Facts::from([("through", last)]));
        Ok(report)
    }

    /// The log, opened, for an auditor.
    async fn audit_for(&self, actor: &Actor, act: Act) -> Result<Arc<Audit>> {
        if !actor.has(Role::Auditor) {
            add(&self.inner.tally.denied_count, 1);
            self.denied(act, actor, &Facts::new());
            let role = Role::Auditor.as_str();
            return Err(AdministrationError::RoleMissing { role }.into());
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
    filter: Arc<Ready>,
}

/// The listener has gone away, or has heard all.
struct Over;

impl Reading {
    /// `counting`: another reader, the last record that it reads, and how many of those that are
    /// wanted until there are to be told.
    async fn run(self, mut reader: Reader, counting: Option<(Reader, u64, u64)>) {
        let mut skipped = 0;
        if let Some((reader, until, last)) = counting {
            match self.count(reader, until).await {
                Ok(count) => skipped = count.saturating_sub(last),
                Err(Over) => return,
            }
        }
        loop {
            let (inner, filter) = (self.vault.inner.clone(), self.filter.clone());
            let read = tokio::task::spawn_blocking(move || {
                let mut page = page(&mut reader);
                page.keep(&filter);
                for record in &mut page.records {
                    show_name(&inner.keystore, record);
                }
                (reader, page)
            });
            let Ok((reader_again, mut page)) = read.await else {
                return;
            };
            reader = reader_again;
            let skipped_here = skipped.min(page.records.len() as u64);
            page.records.drain(..skipped_here as usize);
            skipped -= skipped_here;
            if self.tell(page).await.is_err() {
                return;
            }
        }
    }

    /// How many records up to one are wanted.
    async fn count(&self, mut reader: Reader, until: u64) -> Result<u64, Over> {
        let mut count = 0;
        loop {
            self.check_standing()?;
            let filter = self.filter.clone();
            let read = tokio::task::spawn_blocking(move || {
                let mut page = page(&mut reader);
                page.keep(&filter);
                (reader, page)
            });
            let (reader_again, page) = read.await.map_err(|_| Over)?;
            reader = reader_again;
            let up_to = |record: &&Record| record.sequence <= until;
            count += page.records.iter().filter(up_to).count() as u64;
            let is_unreadable = matches!(page.problem, Some(AuditError::Unreadable { .. }));
            match (page.through, page.problem) {
                (_, Some(_)) if !is_unreadable => return Ok(count),
                (None, None) => return Ok(count),
                (Some(through), _) if through >= until => return Ok(count),
                _ => {}
            }
        }
    }

    async fn tell(&self, page: Page) -> Result<(), Over> {
        let is_empty = page.through.is_none() && page.problem.is_none();
        let is_over = |sequence| self.until.is_some_and(|until| sequence > until);
        for record in page.records {
            if is_over(record.sequence) {
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
        if page.through.is_some_and(is_over) || self.items.is_closed() {
            return Err(Over);
        }
        if !is_empty {
            return self.check_standing();
        }
        let is_closed = self.vault.inner.closed.load(Ordering::Acquire);
        if self.until.is_some() || is_closed {
            return Err(Over);
        }
        tokio::time::sleep(AUDIT_FOLLOW_PAUSE).await;
        self.send(AuditItem::Idle).await
    }

    async fn send(&self, item: AuditItem) -> Result<(), Over> {
        self.check_standing()?;
        self.items.send(item).await.map_err(|_| Over)
    }

    /// Who is no auditor any more has lost the standing that it asked with.
    fn check_standing(&self) -> Result<(), Over> {
        match &self.actor {
            Actor::Subject(subject) if subject.cutoff.is_cut() => Err(Over),
            _ => Ok(()),
        }
    }
}

/// Some records, and why there are no more.
struct Page {
    records: Vec<Record>,
    /// The last that was read, wanted or not.
    through: Option<u64>,
    problem: Option<AuditError>,
}

impl Page {
    fn keep(&mut self, filter: &Ready) {
        self.records.retain(|record| filter.wants(record));
    }
}

fn page(reader: &mut Reader) -> Page {
    let mut page = Page {
        records: Vec::new(),
        through: None,
        problem: None,
    };
    while page.records.len() < AUDIT_PAGE {
        match reader.next() {
            Ok(Some(record)) => {
                page.through = Some(record.sequence);
                page.records.push(record);
            }
            Ok(None) => break,
            Err(error) => {
                page.problem = Some(error);
                break;
            }
        }
    }
    page
}
