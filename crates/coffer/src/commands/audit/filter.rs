//! Which records of the audit log a command is about.

use clap::Args;
use coffer_admin::from_rfc3339;
use coffer_audit::{Hash, Outcome, Recorded};
use coffer_client::segment as parameter;
use coffer_vault::{AuditFilter, AuditQuery, check_act};

use crate::output::moments::time_or_ago as time;

/// Which records: what is given is combined.
#[derive(Debug, Args)]
pub struct WantedArgs {
    /// From this record on, or this time (UTC): a number, 2026-11-20, '2026-11-20 18:31', or 12h
    #[arg(long, value_name = "SEQUENCE|TIME", value_parser = since)]
    pub since: Option<Since>,
    /// Before this time, written likewise
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub until: Option<String>,
    /// An act, such as level.erase, or all of a kind, such as level; an unknown one lists all
    #[arg(long, value_parser = act)]
    pub act: Option<String>,
    /// By or about a subject: its name, its id or an access key id; also local:UID
    #[arg(long, value_name = "NAME|ID")]
    pub subject: Option<String>,
    /// About a bucket
    #[arg(long)]
    pub bucket: Option<String>,
    /// What became of it
    #[arg(long, value_parser = ["begun", "done", "denied", "failed"])]
    pub outcome: Option<String>,
}

/// Where records begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Since {
    /// At this one.
    Record(u64),
    /// At this time: RFC 3339.
    Time(String),
}

fn since(text: &str) -> Result<Since, String> {
    // Taken for a number, a day would find no records, in silence.
    if let Some(day) = day_without_hyphens(text) {
        return Err(format!(
            "this may be a day or a record's number: write {day} for the day, or 0{text} for the \
             record"
        ));
    }
    match text.parse() {
        Ok(number) => Ok(Since::Record(number)),
        Err(_) => time(text).map(Since::Time),
    }
}

/// The day that eight digits stand for, as it is written here.
fn day_without_hyphens(text: &str) -> Option<String> {
    if text.len() != 8 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let day = format!("{}-{}-{}", &text[..4], &text[4..6], &text[6..]);
    let is_likely = ("1970-01-01".."2100-01-01").contains(&day.as_str());
    (is_likely && time(&day).is_ok()).then_some(day)
}

fn act(text: &str) -> Result<String, String> {
    check_act(text).map(|()| text.to_owned())
}

/// A record, by its number and its hash.
pub fn recorded(text: &str) -> Result<Recorded, String> {
    let parts = text.split_once(':');
    let parsed = parts.and_then(|(sequence, hash)| {
        Some(Recorded {
            sequence: sequence.parse().ok()?,
            hash: Hash::from_hex(hash)?,
        })
    });
    parsed.ok_or_else(|| "write the record's number, a colon, and 64 hexadecimal digits".to_owned())
}

impl WantedArgs {
    /// As they stand behind the path's question mark.
    pub fn query(&self) -> String {
        let (since, since_time) = match &self.since {
            Some(Since::Record(number)) => (Some(number.to_string()), None),
            Some(Since::Time(time)) => (None, Some(time.clone())),
            None => (None, None),
        };
        let mut query = String::new();
        for (name, value) in [
            ("since", &since),
            ("since_time", &since_time),
            ("until_time", &self.until),
            ("act", &self.act),
            ("subject", &self.subject),
            ("bucket", &self.bucket),
            ("outcome", &self.outcome),
        ] {
            if let Some(value) = value {
                query += &format!("{name}={}&", parameter(value));
            }
        }
        query
    }

    /// As they are for a log that is read from its files.
    pub fn offline(&self, last: Option<u64>) -> AuditQuery {
        let outcomes = [
            Outcome::Begun,
            Outcome::Done,
            Outcome::Denied,
            Outcome::Failed,
        ];
        let (from, since_ms) = match &self.since {
            Some(Since::Record(number)) => (Some(*number), None),
            Some(Since::Time(time)) => (None, from_rfc3339(time)),
            None => (None, None),
        };
        let named = |outcome: &Outcome| Some(outcome.as_str()) == self.outcome.as_deref();
        AuditQuery {
            from,
            filter: AuditFilter {
                since_ms,
                until_ms: self.until.as_deref().and_then(from_rfc3339),
                act: self.act.clone(),
                subject: self.subject.clone(),
                bucket: self.bucket.clone(),
                outcome: outcomes.into_iter().find(named),
            },
            last,
            follow: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_named_by_number_and_hash() {
        let hash = "ab".repeat(32);
        let parsed = recorded(&format!("7:{hash}")).unwrap();
        assert_eq!((parsed.sequence, parsed.hash.to_string()), (7, hash));
        for wrong in ["", "7", "7:ab", ":", "x:00"] {
            assert!(recorded(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn eight_digits_that_may_be_a_day_are_taken_for_neither() {
        for (text, day) in [("20261120", "2026-11-20"), ("19991231", "1999-12-31")] {
            let refused = since(text).unwrap_err();
            assert!(refused.contains(day), "{refused}");
            assert!(refused.contains(&format!("0{text}")), "{refused}");
            assert_eq!(since(day), Ok(Since::Time(format!("{day}T00:00:00Z"))));
            let number = text.parse().unwrap();
            assert_eq!(since(&format!("0{text}")), Ok(Since::Record(number)));
        }
        for number in [20_261_320, 20_260_230, 10_000_000, 99_999_999, 2_026_112] {
            assert_eq!(since(&number.to_string()), Ok(Since::Record(number)));
        }
    }

    #[test]
    fn records_begin_at_a_number_or_a_time() {
        assert_eq!(since("7"), Ok(Since::Record(7)));
        let day = Since::Time("2026-11-20T00:00:00Z".to_owned());
        assert_eq!(since("2026-11-20"), Ok(day));
        let zoned = "2026-11-20T18:31:03+01:00";
        assert_eq!(since(zoned), Ok(Since::Time(zoned.to_owned())));
        for wrong in ["", "-1", "yesterday", "2026-13-01", "2026-11-20T25:00:00Z"] {
            assert!(since(wrong).is_err(), "{wrong}");
            assert!(time(wrong).is_err(), "{wrong}");
        }
        assert!(time("7").is_err());
        assert!(act("level").is_ok() && act("level.erase").is_ok());
        let unknown = act("lvel").unwrap_err();
        assert!(
            unknown.contains("lvel") && unknown.contains("level.erase"),
            "{unknown}"
        );
    }
}
