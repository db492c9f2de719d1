//! Settings on their way to the target. What stands there is replaced only as long as it is what
//! this migration has set there, or what the bucket had when this migration made it.

use http::Method;

use super::said::{Said, said, there};
use super::{
    BLOCKS, LOCK, OWNERSHIP, as_far_as_said, of_bucket, other_document, set, without_key_id,
    without_rule,
};
use crate::migrate::error::MigrateError;
use crate::migrate::ledger::Ledger;
use crate::migrate::place::Place;
use crate::migrate::{Migration, Mode};
use crate::s3::{Client, Element};

/// What a document says, as far as another is concerned.
pub(super) type Read = fn(Element, &Element) -> Element;

/// All that it says.
pub(super) fn as_it_is(document: Element, _: &Element) -> Element {
    document
}

/// Settings that a bucket may have from the first.
const FROM_THE_FIRST: [&str; 3] = ["encryption", OWNERSHIP, BLOCKS];

fn has_rule(lock: &Element) -> bool {
    lock.child("Rule").is_some()
}

/// A rule that did not come is not taken off.
fn other_rule() -> MigrateError {
    let problem = "the target has a retention for new objects that did not come: it stays; where \
                   it is not meant, take it off there (aws s3api put-object-lock-configuration), \
                   and --without lock says that this is known"
        .to_owned();
    MigrateError::Setting { problem }
}

/// Whether the target says what was noted of a setting.
fn says(there: &Element, noted: &str, read: Read) -> bool {
    Element::parse(noted.as_bytes())
        .is_ok_and(|noted| read(there.clone(), &noted).says_the_same(&read(noted.clone(), &noted)))
}

/// Whether what the target has of a setting is of this migration's doing, or nothing.
fn is_ours(ledger: &Ledger, parameter: &str, there: Option<&Element>, read: Read) -> bool {
    let Some(there) = there else {
        // What came was removed here, unless it is what a new bucket has.
        return ledger.has_set(parameter).is_none();
    };
    let is_there = |ours: String| says(there, &ours, read);
    let (stands, may_stand) = (ledger.stands(parameter), ledger.may_stand(parameter));
    let is_bare_lock = stands.is_none() && parameter == LOCK && !has_rule(there);
    is_bare_lock || stands.into_iter().chain(may_stand).any(is_there)
}

impl Migration {
    pub(super) async fn bring_setting(
        &self,
        client: &Client,
        place: &Place,
        parameter: &'static str,
    ) -> Result<(), MigrateError> {
        let wanted = match said(client, &place.from, parameter).await? {
            Said::Is(wanted) => wanted,
            Said::Unset => return self.take_away(place, parameter).await,
            Said::Unknown => return self.unsaid(place, parameter),
        };
        match parameter {
            "encryption" => {
                let wanted = without_key_id(wanted);
                // What is so without being asked for, services tell or don't.
                self.bring_document(place, parameter, &wanted, as_far_as_said)
                    .await
            }
            _ => {
                self.bring_document(place, parameter, &wanted, as_it_is)
                    .await
            }
        }
    }

    /// What the target has of a setting.
    pub(super) async fn set_there(
        &self,
        place: &Place,
        parameter: &'static str,
    ) -> Result<Option<Element>, MigrateError> {
        there(said(&self.target, &place.to, parameter).await?)
    }

    /// Has the target say the same, as far as `read` looks at what it says.
    pub(super) async fn bring_document(
        &self,
        place: &Place,
        parameter: &'static str,
        wanted: &Element,
        read: Read,
    ) -> Result<(), MigrateError> {
        if self.options.mode == Mode::Plan && !place.is_there {
            return Ok(());
        }
        let there = self.set_there(place, parameter).await?;
        let is_same = |there: &&Element| read((*there).clone(), wanted).says_the_same(wanted);
        if let Some(there) = there.as_ref().filter(is_same) {
            let may_stand = place.ledger.may_stand(parameter);
            if may_stand.is_some_and(|noted| says(there, &noted, read)) {
                // No answer told so yet.
                place.ledger.set(parameter, &there.to_xml())?;
            }
            return Ok(());
        }
        if self.options.mode == Mode::Check {
            return Err(other_document());
        }
        if !is_ours(&place.ledger, parameter, there.as_ref(), read) {
            if parameter == LOCK && !has_rule(wanted) {
                return Err(other_rule());
            }
            self.may_replace(there.is_some())?;
        }
        if self.options.mode == Mode::Plan {
            return Ok(());
        }
        self.set_noted(place, parameter, wanted.to_xml()).await?;
        // Servers may say it in their own words.
        let told = self.set_there(place, parameter).await?;
        let told = told.as_ref().unwrap_or(wanted).to_xml();
        place.ledger.set(parameter, &told)
    }

    /// Sets a setting. What it is to be is noted before, should no answer tell that it is.
    pub(super) async fn set_noted(
        &self,
        place: &Place,
        parameter: &'static str,
        body: String,
    ) -> Result<(), MigrateError> {
        let before = place.ledger.may_stand(parameter).unwrap_or_default();
        place.ledger.setting(parameter, &body)?;
        let done = set(&self.target, &place.to, parameter, body.into_bytes()).await;
        if let Err(error) = &done
            && !error.is_without_answer()
            && !error.is_doubtful()
        {
            // It is not: where it is set some day, that is another's doing.
            place.ledger.setting(parameter, &before)?;
        }
        Ok(done?)
    }

    /// Whether what others set or removed may be made what it is at the source.
    pub(super) fn may_replace(&self, is_set: bool) -> Result<(), MigrateError> {
        let what = if is_set {
            "the target has another one"
        } else {
            "it was removed at the target"
        };
        if self.options.overwrite {
            Ok(())
        } else {
            Err(MigrateError::OthersSet { what })
        }
    }

    /// Removes the target's blocks of the public, if they are none of others'.
    pub(super) async fn remove_blocks(
        &self,
        place: &Place,
        read: Read,
    ) -> Result<(), MigrateError> {
        if self.options.mode == Mode::Plan && !place.is_there {
            return Ok(());
        }
        let Some(there) = self.set_there(place, BLOCKS).await? else {
            return Ok(());
        };
        if self.options.mode == Mode::Check {
            return Err(other_document());
        }
        if !is_ours(&place.ledger, BLOCKS, Some(&there), read) {
            self.may_replace(true)?;
        }
        if self.options.mode == Mode::Plan {
            return Ok(());
        }
        let request = of_bucket(Method::DELETE, &place.to, BLOCKS);
        self.target.send(&request).await?;
        place.ledger.set(BLOCKS, "")
    }

    /// Notes what a bucket has from the first, which was made right now.
    pub(super) async fn note_new(&self, ledger: &Ledger, bucket: &str) -> Result<(), MigrateError> {
        for parameter in FROM_THE_FIRST {
            // What is not known now is taken for others' later.
            if let Ok(Said::Is(found)) = said(&self.target, bucket, parameter).await {
                ledger.found(parameter, &found.to_xml())?;
            }
        }
        Ok(())
    }

    /// Has the bucket at the target lock objects, and takes the retention for new ones off, if it
    /// came: what comes keeps its own, and is given no other on the way.
    pub(super) async fn prepare_lock(
        &self,
        ledger: &Ledger,
        bucket: &str,
        lock: &Element,
    ) -> Result<(), MigrateError> {
        let wanted = without_rule(lock);
        let there = there(said(&self.target, bucket, LOCK).await?)?;
        if let Some(there) = &there
            && (there.says_the_same(&wanted) || !is_ours(ledger, LOCK, Some(there), as_it_is))
        {
            return Ok(());
        }
        let body = wanted.to_xml();
        ledger.setting(LOCK, &body)?;
        set(&self.target, bucket, LOCK, body.clone().into_bytes()).await?;
        ledger.set(LOCK, &body)
    }
}
