//! `coffer audit prune`.

use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use coffer_admin::AuditPruneRequest;
use coffer_client::AdminClient;
use coffer_durable::rfc3339;

use crate::commands::approval_outcome::ask;
use crate::error::Error;
use crate::output::moments::time_or_ago as time;

/// `coffer audit prune`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PruneArgs {
    /// Records from before this time: a day as 2026-11-20, or 90d ago; a day ago at the latest
    #[arg(long, value_name = "TIME", value_parser = time, required_unless_present = "keep")]
    pub before: Option<String>,
    /// All but those of so many days, and of the day that has begun (UTC), such as 365d
    #[arg(long, value_name = "DAYS", value_parser = days, conflicts_with = "before")]
    pub keep: Option<Days>,
}

/// How many days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Days(u32);

const DAY: Duration = Duration::from_hours(24);

fn days(text: &str) -> Result<Days, String> {
    let count = text.strip_suffix('d').and_then(|count| count.parse().ok());
    let count = count.filter(|count| (1..=100_000).contains(count));
    count
        .map(Days)
        .ok_or_else(|| "write a number of days, such as 365d".to_owned())
}

impl Days {
    /// The beginning of the day that was so many days ago, so that who asks again on the same day
    /// asks for the same.
    fn ago(self) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let today = now.unwrap_or_default().as_secs() / DAY.as_secs();
        let day = i64::try_from(today).unwrap_or(0) - i64::from(self.0);
        rfc3339(day * i64::try_from(DAY.as_millis()).unwrap_or(i64::MAX))
    }
}

/// Asks for it.
pub async fn prune(server: &AdminClient, args: &PruneArgs, json: bool) -> Result<ExitCode, Error> {
    let before = match (&args.before, args.keep) {
        (Some(before), _) => before.clone(),
        (None, keep) => keep.unwrap_or(Days(1)).ago(),
    };
    let request = AuditPruneRequest { before };
    ask(server, "/v1/audit/prune", Some(&request), None, json).await
}

const EXAMPLES: &str = "\
An auditor's. Whole segments go, behind a signed record; `coffer audit verify` says up to where.
Export first what must be kept. Ends with 3 when others have to approve it.

Examples:
  coffer audit export > audit-until-now.ndjson
  coffer audit prune --before 2026-01-01
  coffer audit prune --keep 365d";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted() {
        assert_eq!(days("365d"), Ok(Days(365)));
        for wrong in ["", "d", "0d", "365", "-1d", "1h", "99999999999d"] {
            assert!(days(wrong).is_err(), "{wrong}");
        }
        assert!(Days(1).ago().ends_with("T00:00:00.000Z"));
    }
}
