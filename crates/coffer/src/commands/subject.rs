//! `coffer subject`.

use coffer_admin::{Grant, MadeSubject, Subject, SubjectChanges, SubjectRequest};
use http::Method;
use serde_json::json;

use crate::error::Error;
use crate::output::table::{Flush, done, moment, or_dash, sheet, show, table};
use crate::remote::{Remote, segment};

pub mod args;

use self::args::{CreateArgs, NamedArgs, SetArgs, SubjectCommand};

fn path(name: &str) -> String {
    format!("/v1/subjects/{}", segment(name))
}

/// Asks, and shows the answer.
pub async fn subject(remote: &Remote, command: &SubjectCommand) -> Result<(), Error> {
    match command {
        SubjectCommand::Create(args) => create(remote, args).await,
        SubjectCommand::List { json } => {
            let subjects: Vec<Subject> = remote.get("/v1/subjects").await?;
            show(*json, &subjects, |subjects| many(subjects))
        }
        SubjectCommand::Show(NamedArgs { name, json }) => {
            show(*json, &remote.get::<Subject>(&path(name)).await?, one)
        }
        SubjectCommand::Set(args) => set(remote, args).await,
        SubjectCommand::Settle(NamedArgs { name, json }) => {
            let nothing: Option<&()> = None;
            let path = format!("{}/settle", path(name));
            let settled: Subject = remote.call(Method::POST, &path, nothing).await?;
            show(*json, &settled, one)
        }
        SubjectCommand::Disable(args) => switch(remote, args, true).await,
        SubjectCommand::Enable(args) => switch(remote, args, false).await,
        SubjectCommand::Delete(NamedArgs { name, json }) => {
            remote.delete(&path(name)).await?;
            done(*json, &json!({ "name": name, "deleted": true }))
        }
    }
}

async fn create(remote: &Remote, args: &CreateArgs) -> Result<(), Error> {
    let request = SubjectRequest {
        name: args.name.clone(),
        clearance: args.clearance.clone(),
        trusted: args.trusted,
        roles: chosen(&args.roles),
        expires_at: args.expires.clone(),
        grants: (!args.grant.is_empty()).then(|| args.grant.clone()),
    };
    let made: MadeSubject = remote
        .call(Method::POST, "/v1/subjects", Some(&request))
        .await?;
    show(args.json, &made, |made| {
        let secret = &made.secret_access_key.0;
        let note = "\nKeep the secret access key: it is not shown again.\n";
        let shown = [("secret access key", secret.clone())];
        one(&made.subject) + &sheet(shown) + note
    })
}

async fn set(remote: &Remote, args: &SetArgs) -> Result<(), Error> {
    let changes = SubjectChanges {
        clearance: args.clearance.clone(),
        trusted: match (args.trusted, args.floating) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            (false, false) => None,
        },
        roles: args.roles.as_deref().map(chosen),
        expires_at: args.expires.clone(),
        disabled: None,
        all_buckets: args.all_buckets,
        grant: args.grant.clone(),
        revoke: args.revoke.clone(),
    };
    if changes == SubjectChanges::default() {
        return Err(Error::Option {
            option: "coffer subject set",
            problem: "say what to change; --help shows what can be".to_owned(),
        });
    }
    change(remote, &args.name, &changes, args.json).await
}

/// Roles as they were typed; '' is none.
fn chosen(roles: &[String]) -> Vec<String> {
    let named = roles.iter().filter(|role| !role.is_empty());
    named.cloned().collect()
}

async fn switch(remote: &Remote, args: &NamedArgs, disabled: bool) -> Result<(), Error> {
    let changes = SubjectChanges {
        disabled: Some(disabled),
        ..SubjectChanges::default()
    };
    change(remote, &args.name, &changes, args.json).await
}

async fn change(
    remote: &Remote,
    name: &str,
    changes: &SubjectChanges,
    json: bool,
) -> Result<(), Error> {
    let changed: Subject = remote
        .call(Method::PATCH, &path(name), Some(changes))
        .await?;
    show(json, &changed, one)
}

fn state(subject: &Subject) -> String {
    match (&subject.expires_at, subject.disabled) {
        (_, true) => "disabled".to_owned(),
        (Some(at), false) => format!("until {}", moment(at)),
        (None, false) => "active".to_owned(),
    }
}

fn clearance(subject: &Subject) -> String {
    match (subject.trusted, &subject.read) {
        (true, _) => format!("{} (trusted)", subject.clearance),
        (false, Some(read)) => format!("{} (has read {read})", subject.clearance),
        (false, None) => subject.clearance.clone(),
    }
}

fn many(subjects: &[Subject]) -> String {
    let columns = [
        ("SUBJECT", Flush::Left),
        ("ACCESS KEY ID", Flush::Left),
        ("CLEARANCE", Flush::Left),
        ("ROLES", Flush::Left),
        ("BUCKETS", Flush::Right),
        ("STATE (UTC)", Flush::Left),
    ];
    let row = |subject: &Subject| {
        let buckets = match subject.all_buckets {
            true => "all".to_owned(),
            false => subject.grants.len().to_string(),
        };
        vec![
            subject.name.clone(),
            subject.access_key_id.clone(),
            clearance(subject),
            or_dash(&subject.roles.join(",")),
            buckets,
            state(subject),
        ]
    };
    table(&columns, subjects.iter().map(row))
}

fn one(subject: &Subject) -> String {
    let granted = |grant: &Grant| format!("{}={}", grant.bucket, grant.rights.join(","));
    let buckets = match subject.all_buckets {
        true => "all that the clearance allows".to_owned(),
        false => {
            let granted: Vec<String> = subject.grants.iter().map(granted).collect();
            or_dash(&granted.join(" "))
        }
    };
    sheet([
        ("subject", subject.name.clone()),
        ("clearance", clearance(subject)),
        ("roles", or_dash(&subject.roles.join(","))),
        ("buckets", buckets),
        ("state (UTC)", state(subject)),
        ("created (UTC)", moment(&subject.created_at)),
        ("access key id", subject.access_key_id.clone()),
    ])
}
