//! What is set of sharing a bucket: who owns objects, what blocks the public, and its policy, in
//! this order, for a public policy is refused where such policies are blocked.

use http::Method;
use hyper::body::Bytes;

use super::bring::as_it_is;
use super::said::{Said, policy, there};
use super::{
    BLOCKS, OWNERSHIP, POLICY, is_unset, leaf, of_bucket, other_document, parent, setting,
};
use crate::migrate::error::MigrateError;
use crate::migrate::place::Place;
use crate::migrate::policy::{are_same, strangers};
use crate::migrate::{Migration, Mode};
use crate::s3::{Client, Element, S3Error};

const BLOCK_NAMES: [&str; 4] = [
    "BlockPublicAcls",
    "IgnorePublicAcls",
    "BlockPublicPolicy",
    "RestrictPublicBuckets",
];

impl Migration {
    /// Brings all of it, or compares it.
    pub(super) async fn bring_sharing(&self, client: &Client, place: &Place) {
        if self.comes("ownership") {
            let done = self.bring_ownership(client, place).await;
            self.setting_missing(place, "ownership", done);
        }
        let policy = self.policy_to_come(client, place).await;
        if self.comes("public-access-block") {
            let opens = matches!(policy, Ok(Said::Is(_)));
            let done = self.bring_blocks(client, place, opens).await;
            self.setting_missing(place, "public-access-block", done);
        }
        let done = match policy {
            _ if !self.comes("policy") => Ok(()),
            Ok(Said::Is(policy)) => self.bring_policy(place, &policy).await,
            Ok(Said::Unset) => self.take_away(place, POLICY).await,
            Ok(Said::Unknown) => self.unsaid(place, POLICY),
            Err(error) => Err(error),
        };
        self.setting_missing(place, "policy", done);
    }

    /// Where the source has none, lists count there; they do not come, and so what the target has
    /// stays.
    async fn bring_ownership(&self, client: &Client, place: &Place) -> Result<(), MigrateError> {
        let found = setting(client, &place.from, OWNERSHIP).await?;
        match found.filter(|found| found.name == "OwnershipControls") {
            Some(wanted) => {
                self.bring_document(place, OWNERSHIP, &wanted, as_it_is)
                    .await
            }
            None => Ok(()),
        }
    }

    /// Where the source blocks nothing, the target's blocks go only for a policy that comes.
    async fn bring_blocks(
        &self,
        client: &Client,
        place: &Place,
        opens: bool,
    ) -> Result<(), MigrateError> {
        match client
            .document(&of_bucket(Method::GET, &place.from, BLOCKS))
            .await
        {
            Ok((found, _)) if found.name == "PublicAccessBlockConfiguration" => {
                self.bring_document(place, BLOCKS, &all_blocks(&found), blocks)
                    .await
            }
            // Of a service that does not know what was asked for.
            Ok(_) => Ok(()),
            Err(error) if error.code() == Some("NoSuchPublicAccessBlockConfiguration") => {
                if opens {
                    self.remove_blocks(place, blocks).await
                } else {
                    Ok(())
                }
            }
            Err(error) if is_unset(&error) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The policy of the source, if it is to come and can.
    async fn policy_to_come(
        &self,
        client: &Client,
        place: &Place,
    ) -> Result<Said<Bytes>, MigrateError> {
        if !self.comes("policy") {
            return Ok(Said::Unset);
        }
        let wanted = match policy(client, &place.from).await? {
            Said::Is(wanted) => wanted,
            other => return Ok(other),
        };
        let problem = match strangers(&wanted) {
            Err(problem) => problem,
            Ok(strangers) if !strangers.is_empty() => format!(
                "the policy speaks of accounts of the source, which the target does not have: {}; \
                 none of it was set: write it anew for subjects of the target, and --without \
                 policy says that this is done",
                strangers.join(", ")
            ),
            Ok(_) if place.from != place.to => "the policy names the bucket by its name at the \
                 source: write it anew, and --without policy says that this is done"
                .to_owned(),
            Ok(_) => return Ok(Said::Is(wanted)),
        };
        Err(MigrateError::Setting { problem })
    }

    async fn bring_policy(&self, place: &Place, wanted: &Bytes) -> Result<(), MigrateError> {
        if self.options.mode == Mode::Plan && !place.is_there {
            return Ok(());
        }
        let found = there(policy(&self.target, &place.to).await?)?;
        let may_stand = place.ledger.may_stand(POLICY);
        let is_noted = |there: &Bytes| {
            { may_stand.as_ref() }.is_some_and(|noted| are_same(there, noted.as_bytes()))
        };
        if let Some(there) = found.as_ref().filter(|it| are_same(it, wanted)) {
            if is_noted(there) {
                // No answer told so yet.
                place.ledger.set(POLICY, &String::from_utf8_lossy(there))?;
            }
            return Ok(());
        }
        if self.options.mode == Mode::Check {
            return Err(other_document());
        }
        let is_ours = match (place.ledger.has_set(POLICY), &found) {
            (Some(ours), Some(found)) => are_same(found, ours.as_bytes()),
            (ours, found) => ours.is_none() && found.is_none(),
        };
        if !is_ours && !found.as_ref().is_some_and(is_noted) {
            self.may_replace(found.is_some())?;
        }
        if self.options.mode == Mode::Plan {
            return Ok(());
        }
        let body = String::from_utf8_lossy(wanted).into_owned();
        let done = self.set_noted(place, POLICY, body).await;
        done.map_err(|error| refused_policy(error, &place.to))?;
        // Servers may say it in their own words.
        let told = there(policy(&self.target, &place.to).await?)?;
        let told = told.as_ref().unwrap_or(wanted);
        place.ledger.set(POLICY, &String::from_utf8_lossy(told))
    }
}

/// The blocks of a document.
fn blocks(document: Element, _: &Element) -> Element {
    all_blocks(&document)
}

/// All four blocks, said or not.
fn all_blocks(document: &Element) -> Element {
    let block = |name: &&str| {
        leaf(
            name,
            if document.is_true(name) {
                "true"
            } else {
                "false"
            },
        )
    };
    let blocks = BLOCK_NAMES.iter().map(block).collect();
    parent("PublicAccessBlockConfiguration", blocks)
}

/// What a target's refusal of a policy means: the access key may do a lot, and is not the matter.
fn refused_policy(error: MigrateError, bucket: &str) -> MigrateError {
    let MigrateError::Mover(moving) = &error else {
        return error;
    };
    let Some(S3Error::Refused { code, message, .. }) = moving.s3() else {
        return error;
    };
    if code != "AccessDenied" {
        return error;
    }
    let advice = if message.contains("BlockPublicPolicy") {
        format!(
            "where that is meant, remove the block (aws s3api delete-public-access-block --bucket \
             {bucket}) and run this again"
        )
    } else {
        "who owns the bucket at the target sets its policy".to_owned()
    };
    let problem = format!(
        "the target did not take the policy: {message}; {advice}, and --without policy says that \
         this is known"
    );
    MigrateError::Setting { problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_compared_whether_said_or_not() {
        let parsed = |text: &str| Element::parse(text.as_bytes()).unwrap();
        let said = parsed(
            "<PublicAccessBlockConfiguration><BlockPublicPolicy>true</BlockPublicPolicy>\
             <IgnorePublicAcls>false</IgnorePublicAcls></PublicAccessBlockConfiguration>",
        );
        let short = parsed(
            "<PublicAccessBlockConfiguration><BlockPublicPolicy>true</BlockPublicPolicy>\
             </PublicAccessBlockConfiguration>",
        );
        assert!(all_blocks(&said).says_the_same(&all_blocks(&short)));
        let none = parsed("<PublicAccessBlockConfiguration/>");
        assert!(!all_blocks(&said).says_the_same(&all_blocks(&none)));
    }

    #[test]
    fn a_blocked_policy_says_what_to_do() {
        let refused = |message: &str| {
            let error = S3Error::Refused {
                status: 403,
                code: "AccessDenied".to_owned(),
                message: message.to_owned(),
                advice: ": this access key may not do that".to_owned(),
                retry_after: None,
                outcome: None,
            };
            refused_policy(error.into(), "films").to_string()
        };
        let blocked = refused("Access Denied: BlockPublicPolicy is on");
        assert!(
            blocked.contains("delete-public-access-block --bucket films"),
            "{blocked}"
        );
        assert!(!blocked.contains("this access key"), "{blocked}");
        assert!(refused("Access Denied").contains("who owns the bucket"));
    }
}
