//! `coffer subject`.

use std::process::ExitCode;

use coffer_admin::{AccessKey, Grant, MadeSubject, Subject, SubjectChanges, SubjectRequest};
use coffer_client::{AdminClient, segment};
use http::Method;

use crate::error::Error;
use crate::output::table::{Flush, check_output, moment, or_dash, sheet, show, show_done, table};

mod expiry;

mod meant;

pub mod key;

pub mod args;

mod deletion;

use self::args::{
    CreateArgs, DisableArgs, NamedArgs, RenameArgs, SetArgs, SubjectArgs, SubjectCommand,
};
use self::deletion::{administers, confirm_last, delete, listed};
use self::key::key;
use self::meant::meant;

fn path(name: &str) -> String {
    format!("/v1/subjects/{}", segment(name))
}

/// Asks, and shows the answer.
pub async fn subject(server: &AdminClient, args: &SubjectArgs) -> Result<ExitCode, Error> {
    let json = args.answer.json;
    match &args.command {
        SubjectCommand::Create(args) => create(server, args, json).await,
        SubjectCommand::List => {
            let subjects: Vec<Subject> = server.get("/v1/subjects").await?;
            show(json, &subjects, |subjects| many(subjects))
        }
        SubjectCommand::Show(NamedArgs { name }) => {
            show(json, &server.get::<Subject>(&path(name)).await?, one)
        }
        SubjectCommand::Set(args) => set(server, args, json).await,
        SubjectCommand::Rename(RenameArgs { name, new_name }) => {
            let changes = SubjectChanges {
                name: Some(new_name.clone()),
                ..SubjectChanges::default()
            };
            let changed = change(server, (name, false), &changes, json);
            changed.await.map(drop)
        }
        SubjectCommand::Key(args) => key(server, args, json).await,
        SubjectCommand::Settle(NamedArgs { name }) => {
            let nothing: Option<&()> = None;
            let path = format!("{}/settle", path(name));
            let settled: Subject = server.call(Method::POST, &path, nothing).await?;
            show_done(json, &settled, one)
        }
        SubjectCommand::Disable(DisableArgs { name, yes }) => {
            // A list that can't be had, on a damaged disk, does not keep a stolen key from being
            // stopped.
            let mut is_meant = *yes;
            if !yes && let Ok(subjects) = listed(server).await {
                is_meant = confirm_last(&subjects, name, "disable it", "disabled")?;
            }
            switch(server, (name, is_meant), true, json).await
        }
        SubjectCommand::Enable(NamedArgs { name }) => {
            switch(server, (name, false), false, json).await
        }
        SubjectCommand::Delete(args) => delete(server, args, json).await,
    }?;
    Ok(ExitCode::SUCCESS)
}

async fn create(server: &AdminClient, args: &CreateArgs, json: bool) -> Result<(), Error> {
    // The secret is answered once.
    check_output()?;
    let request = SubjectRequest {
        name: args.name.clone(),
        clearance: args.clearance.clone(),
        trusted: args.trusted,
        roles: chosen(&args.roles),
        expires_at: args.expires.clone(),
        grants: (!args.grant.is_empty()).then(|| args.grant.clone()),
    };
    let made: MadeSubject = server
        .call(Method::POST, "/v1/subjects", Some(&request))
        .await?;
    let shown = show_done(json, &made, |made| {
        let secret = &made.secret_access_key.0;
        let note = "\nKeep the secret access key: it is not shown again.\n";
        let shown = [("secret access key", secret.clone())];
        one(&made.subject) + &sheet(shown) + note
    });
    warn_of_unreachable(&made.subject);
    shown.map_err(|error| match error {
        Error::Unwritten { source, .. } => Error::Unwritten {
            remedy: format!(
                "; subject {name} is there, and its secret access key is lost: `coffer subject \
                 delete {name}`, and make it again",
                name = args.name
            ),
            source,
        },
        error => error,
    })
}

async fn set(server: &AdminClient, args: &SetArgs, json: bool) -> Result<(), Error> {
    let changes = SubjectChanges {
        name: None,
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
    let ends = { changes.roles.as_deref() }.is_some_and(|roles| !administers(roles));
    let mut is_meant = args.yes;
    if ends && !args.yes {
        let subjects = listed(server).await?;
        is_meant = confirm_last(&subjects, &args.name, "take the role away", "changed")?;
    }
    let changed = change(server, (&args.name, is_meant), &changes, json);
    warn_of_unreachable(&changed.await?);
    Ok(())
}

/// A grant in a bucket that the clearance leaves out is kept, for a clearance can change; who gave
/// it should know that it does nothing yet.
fn warn_of_unreachable(subject: &Subject) {
    let name = &subject.name;
    for grant in &subject.unreachable_grants {
        eprintln!(
            "warning: {name} can't use {granted} by this grant: its clearance {clearance} leaves \
             the bucket's label out; `coffer subject set {name} --clearance LOW..HIGH` widens it",
            granted = granted(grant),
            clearance = subject.clearance,
        );
    }
}

fn granted(grant: &Grant) -> String {
    format!("{}={}", grant.bucket, grant.rights.join(","))
}

/// Roles as they were typed; '' is none.
fn chosen(roles: &[String]) -> Vec<String> {
    let named = roles.iter().filter(|role| !role.is_empty());
    named.cloned().collect()
}

async fn switch(
    server: &AdminClient,
    (name, is_meant): (&str, bool),
    disabled: bool,
    json: bool,
) -> Result<(), Error> {
    let changes = SubjectChanges {
        disabled: Some(disabled),
        ..SubjectChanges::default()
    };
    let changed = change(server, (name, is_meant), &changes, json);
    changed.await.map(drop)
}

async fn change(
    server: &AdminClient,
    (name, is_meant): (&str, bool),
    changes: &SubjectChanges,
    json: bool,
) -> Result<Subject, Error> {
    let changed: Subject = server
        .call(Method::PATCH, &meant(&path(name), is_meant), Some(changes))
        .await?;
    show_done(json, &changed, one)?;
    Ok(changed)
}

fn state(subject: &Subject) -> String {
    if subject.in_doubt {
        return "in doubt".to_owned();
    }
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
        ("KEYS", Flush::Right),
        ("CLEARANCE", Flush::Left),
        ("ROLES", Flush::Left),
        ("BUCKETS", Flush::Right),
        ("STATE (UTC)", Flush::Left),
    ];
    let row = |subject: &Subject| {
        let buckets = if subject.all_buckets {
            "all".to_owned()
        } else {
            subject.grants.len().to_string()
        };
        vec![
            subject.name.clone(),
            active(subject).to_string(),
            clearance(subject),
            or_dash(&subject.roles.join(",")),
            buckets,
            state(subject),
        ]
    };
    table(&columns, subjects.iter().map(row))
}

fn one(subject: &Subject) -> String {
    let buckets = if subject.all_buckets {
        "all that the clearance allows".to_owned()
    } else {
        let granted: Vec<String> = subject.grants.iter().map(granted).collect();
        or_dash(&granted.join(" "))
    };
    let keys: Vec<String> = subject.access_keys.iter().map(key_line).collect();
    sheet([
        ("subject", subject.name.clone()),
        ("clearance", clearance(subject)),
        ("roles", or_dash(&subject.roles.join(","))),
        ("buckets", buckets),
        ("state (UTC)", state(subject)),
        ("created (UTC)", moment(&subject.created_at)),
        ("id", subject.id.clone()),
        ("access keys", or_dash(&keys.join(", "))),
    ])
}

/// How many of its access keys count, as far as they decide.
fn active(subject: &Subject) -> usize {
    let keys = subject.access_keys.iter();
    keys.filter(|key| key.state == "active").count()
}

/// An access key in a line: its id, and its state where it is not just active.
fn key_line(key: &AccessKey) -> String {
    match (key.state.as_str(), &key.expires_at) {
        ("active", None) => key.id.clone(),
        ("active", Some(at)) => format!("{} (until {})", key.id, moment(at)),
        (state, _) => format!("{} ({state})", key.id),
    }
}
