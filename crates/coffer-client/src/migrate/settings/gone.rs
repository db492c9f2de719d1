//! What this migration has set of a bucket, and the source has not any more.

use http::Method;

use super::said::{policy, there};
use super::{LOCK, POLICY, as_far_as_said, of_bucket};
use crate::migrate::error::MigrateError;
use crate::migrate::place::Place;
use crate::migrate::policy::are_same;
use crate::migrate::{Migration, Mode};
use crate::mover::Event;
use crate::s3::Element;

impl Migration {
    /// Sees to a setting that the source does not have: where it came from there and is still what
    /// came, it is removed if that was asked for, and else told. What others have set stays.
    ///
    /// # Errors
    /// [`MigrateError::Differs`] where both sides are compared; what asking and removing meet.
    pub(super) async fn take_away(
        &self,
        place: &Place,
        parameter: &'static str,
    ) -> Result<(), MigrateError> {
        // Object lock can't be taken off a bucket, and its document says so at the source as well.
        if parameter == LOCK {
            return Ok(());
        }
        let ledger = &place.ledger;
        let mut is_still = false;
        for ours in [ledger.has_set(parameter), ledger.may_stand(parameter)] {
            if let Some(ours) = ours.filter(|_| !is_still) {
                is_still = self.is_still(place, parameter, &ours).await?;
            }
        }
        if !is_still {
            return Ok(());
        }
        match self.options.mode {
            Mode::Check => {
                let what = "the source does not have it any more".to_owned();
                Err(MigrateError::Differs { what })
            }
            Mode::Move if self.options.delete => {
                let request = of_bucket(Method::DELETE, &place.to, parameter);
                self.target.send(&request).await?;
                place.ledger.set(parameter, "")
            }
            Mode::Move | Mode::Plan => {
                self.tell(&Event::Note(&format!(
                    "{}: {parameter} is gone, and s3://{} still has it: --delete removes it there",
                    place.text, place.to
                )));
                Ok(())
            }
        }
    }

    /// Whether the target says of a setting what this migration set.
    async fn is_still(
        &self,
        place: &Place,
        parameter: &'static str,
        ours: &str,
    ) -> Result<bool, MigrateError> {
        if parameter == POLICY {
            let there = there(policy(&self.target, &place.to).await?)?;
            return Ok(there.is_some_and(|there| are_same(&there, ours.as_bytes())));
        }
        let there = self.set_there(place, parameter).await?;
        let (Some(there), Ok(ours)) = (there, Element::parse(ours.as_bytes())) else {
            return Ok(false);
        };
        let there = match parameter {
            "encryption" => as_far_as_said(there, &ours),
            _ => there,
        };
        Ok(there.says_the_same(&ours))
    }
}
