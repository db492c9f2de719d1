//! Metrics in Prometheus' text format, version 0.0.4.
//!
//! They hold counts and sizes: no name of a bucket, an object or a subject.

use std::fmt::{Display, Write};
use std::path::Path;
use std::time::SystemTime;

use coffer_vault::{Counters, KeyMemory, LevelUsage, locked_memory};

pub(crate) use self::figures::VaultFigures;
use crate::metrics::process::Process;
use crate::metrics::s3_metrics::{S3Metrics, S3Time};
use crate::metrics::traffic::TrafficSnapshot;

/// The content type of [`render`]'s text.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

mod figures;

mod copies;

mod quotas;

mod transfers;

/// All metrics.
pub(crate) fn render(
    is_ready: bool,
    certificate_expiry: Option<SystemTime>,
    audit_writable: bool,
    vault: &VaultFigures,
    data: &Path,
    requests: &S3Metrics,
    traffic: &TrafficSnapshot,
) -> String {
    let mut page = Page::default();
    page.gauge(
        "coffer_ready",
        "Whether the server takes requests, can write its data folder and is not fenced off.",
        u8::from(is_ready),
    );
    page.gauge(
        "coffer_audit_writable",
        "Whether the audit log can be written; acts that need it are refused otherwise.",
        u8::from(audit_writable),
    );
    page.family("coffer_info", "gauge", "Version of the program.");
    page.sample("coffer_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    if let Some(end) = certificate_expiry {
        let since = end.duration_since(SystemTime::UNIX_EPOCH);
        page.gauge(
            "coffer_certificate_expiry_seconds",
            "When the server's certificate expires, in seconds since 1970.",
            since.map_or(0, |since| since.as_secs()),
        );
    }
    page.requests(requests);
    page.traffic(traffic);
    page.vault(&vault.counters);
    page.transfers(&vault.counters.transfers);
    page.levels(&vault.levels);
    page.quotas(&vault.quotas);
    page.copies(&vault.copies, vault.standby.as_ref());
    page.fence(vault.fence.as_ref());
    page.cache(vault.cache.as_ref());
    page.disk(data);
    page.keys(locked_memory());
    page.process(&Process::now());
    page.text
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn requests(&mut self, requests: &S3Metrics) {
        let answered = "coffer_s3_requests_total";
        self.family(
            answered,
            "counter",
            "S3 requests answered; status 0 stands for a rare one.",
        );
        for (operation, status, count) in &requests.answered {
            let labels = [("operation", *operation), ("status", &status.to_string())];
            self.sample(answered, &labels, count);
        }
        let time = "coffer_s3_request_seconds";
        self.family(time, "histogram", "Time until the heads of S3 answers.");
        for row in &requests.times {
            self.time(time, row);
        }
        self.gauge(
            "coffer_s3_requests_in_flight",
            "S3 requests under way.",
            requests.in_flight_count,
        );
        self.counter(
            "coffer_s3_received_body_bytes_total",
            "Bytes of the bodies of S3 requests.",
            requests.received_bytes,
        );
        self.counter(
            "coffer_s3_sent_body_bytes_total",
            "Bytes of the bodies of S3 answers.",
            requests.sent_bytes,
        );
    }

    fn time(&mut self, name: &str, time: &S3Time) {
        let bucket = format!("{name}_bucket");
        let operation = ("operation", time.operation);
        for (bound, count) in &time.within {
            let bound = bound.as_secs_f64().to_string();
            self.sample(&bucket, &[operation, ("le", &bound)], count);
        }
        self.sample(&bucket, &[operation, ("le", "+Inf")], time.count);
        self.sample(
            &format!("{name}_sum"),
            &[operation],
            time.total.as_secs_f64(),
        );
        self.sample(&format!("{name}_count"), &[operation], time.count);
    }

    fn disk(&mut self, data: &Path) {
        // Where the system does not tell, there is no metric.
        let Ok(figures) = rustix::fs::statvfs(data) else {
            return;
        };
        let bytes = |blocks: u64| blocks.saturating_mul(figures.f_frsize);
        self.gauge(
            "coffer_disk_free_bytes",
            "Free space of the data folder's file system.",
            bytes(figures.f_bavail),
        );
        self.gauge(
            "coffer_disk_size_bytes",
            "Size of the data folder's file system.",
            bytes(figures.f_blocks),
        );
    }

    fn traffic(&mut self, traffic: &TrafficSnapshot) {
        let t = traffic;
        self.counter(
            "coffer_s3_requests_turned_away_total",
            "S3 requests answered 503 because too many were under way.",
            t.turned_away_count,
        );
        self.gauge(
            "coffer_s3_connections",
            "S3 connections open.",
            t.open_count,
        );
        self.counter(
            "coffer_s3_connections_accepted_total",
            "S3 connections accepted.",
            t.accepted_count,
        );
        self.counter(
            "coffer_s3_handshakes_failed_total",
            "S3 connections that ended in their TLS handshake.",
            t.handshake_failed_count,
        );
        self.counter(
            "coffer_s3_handshakes_post_quantum_total",
            "S3 connections whose keys were exchanged by X25519MLKEM768.",
            t.post_quantum_count,
        );
        self.counter(
            "coffer_s3_connections_cut_off_total",
            "S3 connections cut off because the client was too slow.",
            t.cut_off_count,
        );
        self.counter(
            "coffer_s3_connections_made_room_total",
            "Idle S3 connections closed for others, or because they did not sign in.",
            t.made_room_count,
        );
        self.counter(
            "coffer_s3_connections_kept_out_total",
            "S3 connections closed because their address had as many as it may.",
            t.kept_out_count,
        );
        self.counter(
            "coffer_s3_received_bytes_total",
            "Bytes received from S3 clients, on the wire.",
            t.received_bytes,
        );
        self.counter(
            "coffer_s3_sent_bytes_total",
            "Bytes sent to S3 clients, on the wire.",
            t.sent_bytes,
        );
    }

    fn keys(&mut self, memory: KeyMemory) {
        self.gauge(
            "coffer_key_memory_locked_bytes",
            "Memory of keys that can not be swapped out.",
            memory.locked_bytes,
        );
        self.gauge(
            "coffer_key_memory_unlocked_bytes",
            "Memory of keys that the system refused to lock.",
            memory.unlocked_bytes,
        );
    }

    fn lifecycle(&mut self, vault: &Counters) {
        for (name, help, value) in [
            (
                "coffer_lifecycle_removed_total",
                "Versions and delete markers that lifecycle rules removed.",
                vault.lifecycle_removed_count,
            ),
            (
                "coffer_lifecycle_hidden_total",
                "Objects that lifecycle rules hid behind delete markers.",
                vault.lifecycle_hidden_count,
            ),
            (
                "coffer_aborted_uploads_total",
                "Uploads aborted for their age, by lifecycle rules or the server's setting.",
                vault.lifecycle_upload_count,
            ),
            (
                "coffer_lifecycle_postponed_total",
                "Buckets left to the next run of lifecycle rules: in doubt, or it failed there.",
                vault.lifecycle_postponed_count,
            ),
        ] {
            self.counter(name, help, value);
        }
    }

    fn vault(&mut self, vault: &Counters) {
        for (name, help, value) in [
            (
                "coffer_stored_bytes_total",
                "Bytes sealed and committed.",
                vault.stored_bytes,
            ),
            (
                "coffer_read_bytes_total",
                "Bytes opened and given out.",
                vault.read_bytes,
            ),
            (
                "coffer_stored_total",
                "Objects and parts committed.",
                vault.stored_count,
            ),
            (
                "coffer_read_total",
                "Objects whose reading began.",
                vault.read_count,
            ),
            (
                "coffer_denied_total",
                "Requests that the monitor refused, and those for what there is not.",
                vault.denied_count,
            ),
            (
                "coffer_damage_total",
                "Stored data that did not open.",
                vault.damage_count,
            ),
            (
                "coffer_storage_full_total",
                "Writes refused because the disk was full.",
                vault.storage_full_count,
            ),
            (
                "coffer_reclaimed_blobs_total",
                "Blob files reclaimed because nothing referred to them.",
                vault.reclaimed_count,
            ),
        ] {
            self.counter(name, help, value);
        }
        self.lifecycle(vault);
        self.gauge(
            "coffer_open_catalogs",
            "Catalogs open.",
            vault.open_catalog_count,
        );
        self.gauge(
            "coffer_kept_orphans",
            "Blob files that nothing referred to and that were kept: their catalog is in doubt.",
            vault.kept_orphan_count,
        );
        self.gauge(
            "coffer_open_uploads",
            "Multipart uploads neither completed nor aborted.",
            vault.open_upload_count,
        );
    }

    fn levels(&mut self, levels: &[LevelUsage]) {
        let figure = |page: &mut Self, name, help, value: fn(&LevelUsage) -> u64| {
            page.family(name, "gauge", help);
            for usage in levels {
                page.sample(name, &[("level", &usage.level)], value(usage));
            }
        };
        figure(
            self,
            "coffer_level_buckets",
            "Buckets of each level, by its id.",
            |usage| usage.buckets,
        );
        figure(
            self,
            "coffer_level_objects",
            "Objects of each level, as of half a minute ago at most.",
            |usage| usage.objects,
        );
        figure(
            self,
            "coffer_level_bytes",
            "Bytes of the objects of each level, as of half a minute ago at most.",
            |usage| usage.bytes,
        );
        figure(
            self,
            "coffer_level_upload_bytes",
            "Bytes of the parts of uploads under way, as of half a minute ago at most.",
            |usage| usage.upload_bytes,
        );
    }

    fn process(&mut self, process: &Process) {
        self.counter(
            "coffer_log_lines_lost_total",
            "Lines of the log that could not be written.",
            process.lost_log_lines,
        );
        if let Some(bytes) = process.resident_bytes {
            self.gauge("process_resident_memory_bytes", "Memory in RAM.", bytes);
        }
        if let Some(seconds) = process.cpu_seconds {
            self.counter("process_cpu_seconds_total", "Processor time.", seconds);
        }
        if let Some(count) = process.open_files {
            self.gauge("process_open_fds", "Open files and sockets.", count);
        }
        if let Some(seconds) = process.started_seconds {
            self.gauge(
                "process_start_time_seconds",
                "Start, in seconds since 1970.",
                seconds,
            );
        }
    }

    fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "counter", help);
        self.sample(name, &[], value);
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "gauge", help);
        self.sample(name, &[], value);
    }

    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
    }

    /// Labels are ours and need no escaping.
    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(label, text)| format!("{label}=\"{text}\""))
            .collect();
        if labels.is_empty() {
            self.line(format_args!("{name} {value}"));
        } else {
            self.line(format_args!("{name}{{{}}} {value}", labels.join(",")));
        }
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.text, "{line}").expect("a String takes any text");
    }
}

#[cfg(test)]
mod tests;
