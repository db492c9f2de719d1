//! `coffer subject delete`, and what else would leave no system administrator.

use coffer_admin::{Subject, from_rfc3339};
use coffer_client::{AdminClient, segment};
use coffer_durable::now_ms;
use serde_json::json;

use super::args::DeleteArgs;
use super::meant::meant;
use crate::error::Error;
use crate::output::asking::ask_for;
use crate::output::printable::printable;
use crate::output::table::done;

/// The role without which no subject makes others.
const ADMINISTRATOR: &str = "system-administrator";

/// Deletes a subject; the last system administrator only where that is meant.
pub(super) async fn delete(
    server: &AdminClient,
    args: &DeleteArgs,
    json: bool,
) -> Result<(), Error> {
    let DeleteArgs { name, yes } = args;
    let is_meant = *yes || confirm_last(&listed(server).await?, name, "delete it", "deleted")?;
    let path = format!("/v1/subjects/{}", segment(name));
    server.delete(&meant(&path, is_meant)).await?;
    let told = json!({ "name": name, "deleted": true });
    done(json, &told, &format!("subject {name} was deleted"))
}

/// All subjects.
pub(super) async fn listed(server: &AdminClient) -> Result<Vec<Subject>, Error> {
    Ok(server.get("/v1/subjects").await?)
}

/// Has the name of the last system administrator typed, if that is who is meant; tells whether it
/// was.
pub(super) fn confirm_last(
    subjects: &[Subject],
    name: &str,
    act: &str,
    done: &'static str,
) -> Result<bool, Error> {
    // One that is not there is the server's to tell.
    match last_administrator(subjects, name) {
        Some(last) => confirm(last, act, done).map(|()| true),
        None => Ok(false),
    }
}

/// Whether these roles make other subjects.
pub(super) fn administers(roles: &[String]) -> bool {
    roles.iter().any(|role| role == ADMINISTRATOR)
}

/// The subject that is meant, if it is a system administrator and no other can act as one.
fn last_administrator<'a>(subjects: &'a [Subject], name: &str) -> Option<&'a Subject> {
    let has_key = |subject: &Subject| subject.access_keys.iter().any(|key| key.id == name);
    let is_meant =
        |subject: &&Subject| subject.name == name || subject.id == name || has_key(subject);
    let is_administrator = |subject: &Subject| administers(&subject.roles);
    let acts = |subject: &Subject| {
        let mut keys = subject.access_keys.iter();
        let end_ms = subject.expires_at.as_deref().and_then(from_rfc3339);
        let has_expired = end_ms.is_some_and(|ms| ms <= now_ms());
        let is_usable = !(subject.disabled || subject.in_doubt || has_expired);
        is_usable && keys.any(|key| key.state == "active")
    };
    let meant = { subjects.iter() }.find(is_meant)?;
    let others = subjects.iter().filter(|other| other.id != meant.id);
    let mut others = others.filter(|other| is_administrator(other) && acts(other));
    (is_administrator(meant) && others.next().is_none()).then_some(meant)
}

/// Has its name typed.
fn confirm(subject: &Subject, act: &str, done: &'static str) -> Result<(), Error> {
    let (name, roles) = (printable(&subject.name), subject.roles.join(", "));
    let question = format!(
        "{name} is the last system administrator, with the roles {roles}.\nWithout it, only the \
         owner of the data folder and root make and change subjects and buckets,\nat the socket \
         there. Type its name to {act}: "
    );
    ask_for(&subject.name, &question, done, "--yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(name: &str, role: &str, state: &str) -> Subject {
        let key = serde_json::json!({
            "id": format!("CF{name}"), "state": state, "created_at": "2026-01-01T00:00:00.000Z",
        });
        serde_json::from_value(serde_json::json!({
            "name": name, "id": format!("id of {name}"), "clearance": "default",
            "trusted": false, "roles": [role], "disabled": false, "in_doubt": false,
            "all_buckets": true, "grants": [], "unreachable_grants": [],
            "access_keys": [key], "created_at": "2026-01-01T00:00:00.000Z",
        }))
        .unwrap()
    }

    #[test]
    fn the_last_administrator_is_the_one_beside_whom_no_other_can_act() {
        let mut subjects = vec![
            subject("ada", ADMINISTRATOR, "active"),
            subject("ben", ADMINISTRATOR, "expired"),
            subject("carl", "key-custodian", "active"),
        ];
        for named in ["ada", "id of ada", "CFada"] {
            let last = last_administrator(&subjects, named);
            assert_eq!(last.map(|it| it.name.as_str()), Some("ada"), "{named}");
        }
        for other in ["ben", "carl", "dora"] {
            assert_eq!(last_administrator(&subjects, other), None, "{other}");
        }
        subjects.push(subject("eve", ADMINISTRATOR, "active"));
        assert_eq!(last_administrator(&subjects, "ada"), None);
    }
}
