//! What the samples of a record advise.

use super::*;
use crate::contender::{Availability, Contender};
use crate::host::kernel_crypto::Driver;
use crate::record::planted::{experiment, record};
use crate::record::{Axis, Counts, Point, Sample, Series, Unit};
use crate::report::page;
use coffer_measure::comparison::Finding;

mod choices;
mod question;

/// A contender that took so many CPU and wall seconds for a gigabyte, in each round.
fn series(name: &str, placement: Placement, x: u64, rounds: &[(f64, f64)]) -> Series {
    let sample = |&(cpu, wall): &(f64, f64)| Sample {
        counts: Some(Counts {
            transfers: 1000,
            context_switches: Some(0),
        }),
        ..Sample::new(1_000_000_000, wall + 1e-7, cpu + 1e-7)
    };
    Series {
        contender: Contender::new(name, placement, ""),
        points: vec![Point {
            x,
            samples: rounds.iter().map(sample).collect(),
            observed: None,
        }],
    }
}

fn of<'a>(all: &'a [Advice], job: &str) -> &'a Advice {
    all.iter().find(|one| one.job == job).unwrap()
}

/// The advice for a link, whose stream and copy took the same.
fn link(unit: Unit, all: &[Series]) -> Advice {
    let both = ["net/stream", "net/copy"].map(|id| experiment(id, unit, all.to_vec()));
    of(&advice(&record(both.into())), "Link between two sites").clone()
}

/// Nine rounds around a cost, of CPU and of wall time.
fn rounds(cpu: f64, wall: f64) -> Vec<(f64, f64)> {
    let shake = [1.0, 1.01, 0.99, 1.005, 0.995, 1.002, 0.998, 1.0, 1.001];
    shake.map(|by| (cpu * by, wall * by)).into()
}

/// Sent to one client on the same cores: what the client saves the server, it spends itself.
fn transferred(rounds_of_client: &[(f64, f64)]) -> Record {
    let x = 100_000_000;
    let all = vec![
        series("none", Placement::None, x, &rounds(0.05, 0.5)),
        series("TLS", Placement::User, x, &rounds(0.72, 1.0)),
        series("slow", Placement::User, x, &rounds(2.0, 2.0)),
        series("sealed", Placement::Client, x, rounds_of_client),
    ];
    let mut sent = experiment("sendfile/transfer", Unit::MegabytesPerSecond, all);
    sent.axis = Axis::FileBytes;
    record(vec![sent])
}

fn transfer(rounds_of_client: &[(f64, f64)]) -> Vec<Advice> {
    advice(&transferred(rounds_of_client))
}

#[test]
fn the_servers_cpu_decides_before_time_does() {
    let all = transfer(&rounds(0.08, 1.0));
    let advice = of(&all, "Large streams");
    assert_eq!(advice.verdict, Verdict::Choose(Placement::Client));
    assert_eq!(advice.decided_by, 0);
    assert!(advice.reasons[0].contains("9.00 times"), "{advice:?}");
    assert!(advice.reasons[1].contains("no difference"), "{advice:?}");
    let text = advice.reasons.join(" ");
    assert!(
        text.contains("Told by: sendfile/transfer, 100 MB; 9 rounds of 1000 requests."),
        "{text}"
    );
    assert!(!text.contains("share the cores"), "{text}");
    assert_eq!(advice.ran, ["TLS", "slow", "sealed"]);
    assert_eq!(advice.rows[0].best.len(), 3, "the floor stands beside them");
}

#[test]
fn who_does_not_authenticate_is_no_advice() {
    let x = 100_000_000;
    let all = vec![
        series("TLS", Placement::User, x, &rounds(0.72, 1.0)),
        series(
            "kernel TLS, sendfile",
            Placement::Kernel,
            x,
            &rounds(0.9, 1.0),
        ),
        series(
            "read, AF_ALG, write",
            Placement::Kernel,
            x,
            &rounds(0.1, 0.1),
        ),
    ];
    let unit = Unit::MegabytesPerSecond;
    let all = advice(&record(vec![experiment("sendfile/transfer", unit, all)]));
    let streams = of(&all, "Large streams");
    assert_eq!(streams.verdict, Verdict::Choose(Placement::User));
    assert_eq!(streams.ran, ["TLS", "kernel TLS, sendfile"]);
}

#[test]
fn time_decides_where_cpu_does_not() {
    let all = transfer(&rounds(0.72, 3.0));
    let advice = of(&all, "Large streams");
    assert_eq!(advice.verdict, Verdict::Choose(Placement::User));
    assert_eq!(advice.decided_by, 1);
    assert!(advice.reasons.join(" ").contains("share the cores here"));
    assert_eq!(
        of(&transfer(&rounds(0.72, 1.0)), "Large streams").verdict,
        Verdict::NoDifference
    );
}

#[test]
fn what_scatters_is_not_called_the_same() {
    let wild: Vec<(f64, f64)> = [0.3, 2.0, 0.5, 1.5, 0.4, 1.2, 0.6, 0.9, 1.1]
        .map(|by| (0.72 * by, by))
        .into();
    let all = transfer(&wild);
    assert_eq!(of(&all, "Large streams").verdict, Verdict::CannotTell);
    // Nor is any cell of the first screen, which gives a multiple for each.
    let first_screen = |rounds: &[(f64, f64)]| page(&transferred(rounds), &[]);
    assert!(first_screen(&wild).contains(" × ?</b>"));
    assert!(!first_screen(&rounds(0.08, 1.0)).contains(" × ?"));
}

#[test]
fn few_rounds_are_told() {
    let three = transfer(&rounds(0.08, 1.0)[..3]);
    let text = of(&three, "Large streams").reasons.join(" ");
    assert!(text.contains("75 % only"), "{text}");
    // However far apart they are: from six on a placement is chosen.
    let of_rounds = |count: usize| transferred(&rounds(0.08, 1.0)[..count]);
    let five = advice(&of_rounds(5));
    assert_eq!(of(&five, "Large streams").verdict, Verdict::CannotTell);
    assert!(page(&of_rounds(5), &[]).contains("too few rounds were made"));
    let six = advice(&of_rounds(6));
    let client = Verdict::Choose(Placement::Client);
    assert_eq!(of(&six, "Large streams").verdict, client);
    // One sample scatters as little as it tells.
    let one = page(&transferred(&rounds(0.08, 1.0)[..1]), &[]);
    assert!(one.contains("too few rounds were made") && !one.contains("scatter too much"));
    let nine = transfer(&rounds(0.08, 1.0));
    assert!(
        !of(&nine, "Large streams")
            .reasons
            .join(" ")
            .contains("only")
    );
}

#[test]
fn instructions_are_not_called_seconds() {
    let all = vec![
        series("TLS", Placement::User, 1_000_000, &[(2.0, 3.0)]),
        series("kernel TLS", Placement::Kernel, 1_000_000, &[(1.0, 2.0)]),
    ];
    let unit = Unit::BytesPerThousandInstructions;
    let all = advice(&record(vec![experiment("sendfile/transfer", unit, all)]));
    let advice = of(&all, "Large streams");
    assert_eq!(advice.verdict, Verdict::Choose(Placement::Kernel));
    let text = advice.reasons.join(" ");
    assert!(text.contains("instructions a byte"), "{text}");
    assert!(!text.contains("s/GB") && !text.contains("rounds"), "{text}");
}

/// A third may be far from both.
#[test]
fn no_difference_is_said_of_those_that_remain() {
    let x = 100_000_000;
    let all = vec![
        series("TLS", Placement::User, x, &rounds(1.0, 1.0)),
        series(
            "kernel TLS, sendfile",
            Placement::Kernel,
            x,
            &rounds(1.0, 1.0),
        ),
        series("sealed", Placement::Client, x, &rounds(3.0, 3.0)),
    ];
    let unit = Unit::MegabytesPerSecond;
    let record = record(vec![experiment("sendfile/transfer", unit, all)]);
    let found = advice(&record);
    assert_eq!(of(&found, "Large streams").verdict, Verdict::NoDifference);
    let sentence = "No difference between user space and the kernel: they are within 5 %.";
    assert!(page(&record, &[]).contains(sentence));
}

/// On an image in a file everything is slower; that is not the cipher's fault. What is written and
/// what is read count together.
#[test]
fn who_works_on_an_image_is_compared_with_an_image() {
    let image = "none, ext4 in an image";
    let all = |crypt: f64| {
        vec![
            series("none", Placement::None, 0, &rounds(1.0, 1.0)),
            series(image, Placement::None, 0, &rounds(2.0, 2.0)),
            series("dm-crypt", Placement::Kernel, 0, &rounds(crypt, crypt)),
            series("gocryptfs", Placement::User, 0, &rounds(1.8, 1.8)),
            series("coffer blob", Placement::User, 0, &rounds(1.1, 1.1)),
        ]
    };
    let unit = Unit::MegabytesPerSecond;
    let both = |write: f64, read: f64| {
        advice(&record(vec![
            experiment("file/write", unit, all(write)),
            experiment("file/read", unit, all(read)),
        ]))
    };
    let found = both(2.4, 2.4);
    let disk = of(&found, "Whole disk");
    assert_eq!(disk.verdict, Verdict::Choose(Placement::Kernel));
    let text = disk.reasons.join(" ");
    assert!(text.contains("dm-crypt (kernel) 1.20"), "{text}");
    assert!(text.contains("gocryptfs (user) 1.80"), "{text}");
    assert!(!text.contains("coffer blob"), "{text}");
    let device = of(&found, "Block device");
    assert_eq!(device.verdict, Verdict::OnlyOneRan(Placement::Kernel));
    let slow_to_read = both(2.4, 6.0);
    let disk = of(&slow_to_read, "Whole disk");
    assert_eq!(disk.verdict, Verdict::Choose(Placement::User));
}

/// How many times the same without encryption is no amount: both are told. And whose AES is in C,
/// on a processor that has instructions for it, is told to be so.
#[test]
fn what_is_relative_tells_its_amounts_and_a_slow_kernel_is_named() {
    let all = |kernel: &str| {
        vec![
            series("none", Placement::None, 0, &rounds(0.5, 0.5)),
            series(
                "none, ext4 in an image",
                Placement::None,
                0,
                &rounds(0.6, 0.6),
            ),
            series("fscrypt", Placement::Kernel, 0, &rounds(36.0, 18.0)),
            series("gocryptfs", Placement::User, 0, &rounds(4.0, 4.0)),
            series(kernel, Placement::Kernel, 0, &rounds(8.0, 4.0)),
            series("none, TCP", Placement::None, 0, &rounds(0.5, 0.5)),
        ]
    };
    let driver = |algorithm: &str, driver: &str, priority| Driver {
        algorithm: algorithm.into(),
        driver: driver.into(),
        priority,
        kind: "cipher".into(),
        internal: false,
    };
    let ids = ["file/write", "file/read", "net/stream", "net/copy"];
    let unit = Unit::MegabytesPerSecond;
    let mut record = record(ids.map(|id| experiment(id, unit, all("WireGuard"))).into());
    record.machine.instructions = vec!["aes".into()];
    record.machine.drivers = vec![driver("aes", "aes-fixed-time", 101)];
    let found = advice(&record);
    let disk = of(&found, "Whole disk");
    assert_eq!(disk.verdict, Verdict::Choose(Placement::User));
    let text = disk.reasons.join(" ");
    for part in [
        "times the CPU time of the whole machine without encryption: gocryptfs (user) 8.00",
        "(medians: 8.00 with encryption, 1.00 without, in CPU s/GB of the whole machine) against",
        "against fscrypt (kernel) 60.0",
        "(medians: 72.0 with encryption, 1.20 without, in CPU s/GB of the whole machine): the",
        "the second’s is 7.50 times",
        "aes-fixed-time comes first",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let sentence = "In user space: fscrypt takes 7.50 times the CPU time, each beside the same \
                    without encryption. This kernel lists AES in C only.";
    assert!(page(&record, &[]).contains(sentence));
    // WireGuard's cipher is another, and with a driver of the processor's nothing is to be said.
    assert!(!of(&found, "Link between two sites").in_c);
    let fast = driver("xts(aes)", "xts-aes-aesni", 401);
    record.machine.drivers.push(fast);
    let found = advice(&record);
    assert!(!of(&found, "Whole disk").in_c);
}

/// What a protocol takes by itself is no fault of the cipher below it.
#[test]
fn disks_over_a_network_are_compared_with_their_own_protocol() {
    let all = || {
        vec![
            series("NBD", Placement::None, 0, &rounds(1.0, 1.0)),
            series("NBD over TLS", Placement::User, 0, &rounds(1.5, 1.5)),
            series("iSCSI", Placement::None, 0, &rounds(3.0, 3.0)),
            series("iSCSI over IPsec", Placement::Kernel, 0, &rounds(3.3, 3.3)),
        ]
    };
    let unit = Unit::MegabytesPerSecond;
    let both = ["net/block-write", "net/block-read"].map(|id| experiment(id, unit, all()));
    let found = advice(&record(both.into()));
    let disk = of(&found, "Disk over a network");
    assert_eq!(disk.verdict, Verdict::Choose(Placement::Kernel));
    let text = disk.reasons.join(" ");
    assert!(text.contains("iSCSI over IPsec (kernel) 1.10"), "{text}");
    assert!(text.contains("NBD over TLS (user) 1.50"), "{text}");
}

/// Those who upload have one place to encrypt at: the advice tells what it takes, and is no choice.
#[test]
fn uploads_tell_what_encryption_takes() {
    let all = vec![
        series("plain", Placement::None, 0, &rounds(0.2, 1.0)),
        series("a pool", Placement::User, 0, &rounds(0.8, 1.2)),
        series("coffer", Placement::User, 0, &rounds(3.0, 4.0)),
    ];
    let unit = Unit::MegabytesPerSecond;
    let all = advice(&record(vec![experiment("server/upload/file", unit, all)]));
    let uploads = of(&all, "Uploads");
    assert_eq!(uploads.verdict, Verdict::OnlyOneRan(Placement::User));
    assert_eq!(uploads.ran, ["a pool", "coffer"]);
    let floor = uploads.rows[0].at(Placement::None).unwrap();
    assert!((floor.times() - 0.25).abs() < 1e-6, "{floor:?}");
    assert!(uploads.reasons[0].contains("0.80"), "{uploads:?}");
}

#[test]
fn what_did_not_run_is_no_loser() {
    let mut absent = series("k", Placement::Kernel, 1024, &[]);
    absent.points.clear();
    absent.contender.availability = Availability::cannot("no socket", "a socket");
    let own = series("u", Placement::User, 1024, &rounds(1.0, 1.0));
    let unit = Unit::MegabytesPerCpuSecond;
    let ids = ["raw/aes-256-gcm/encrypt", "raw/aes-256-gcm/decrypt"];
    let both = ids.map(|id| experiment(id, unit, vec![own.clone(), absent.clone()]));
    let all = advice(&record(both.into()));
    let advice = of(&all, "Many small objects");
    assert_eq!(advice.verdict, Verdict::OnlyOneRan(Placement::User));
    assert_eq!(advice.absent[0].placement, Placement::Kernel);
    let text = &advice.absent[0].text;
    assert!(
        text.contains("no socket") && text.contains("a socket"),
        "{text}"
    );
    assert_eq!(of(&all, "Large streams").verdict, Verdict::NotMeasured);
}

/// Where the kernel's clock ticked a few times only, CPU time is no evidence.
#[test]
fn a_few_ticks_decide_nothing() {
    let ticks =
        |cpu: f64, wall: f64| -> Vec<(f64, f64)> { (0..9).map(|_| (cpu - 1e-7, wall)).collect() };
    let all = vec![
        series("a program", Placement::User, 0, &ticks(0.02, 1.0)),
        series("IPsec", Placement::Kernel, 0, &ticks(0.01, 2.0)),
    ];
    let link = link(Unit::MegabytesPerSecond, &all);
    assert_eq!(link.verdict, Verdict::Choose(Placement::User));
    assert_eq!(link.rows[0].resource, Resource::Time);
}

/// Of counted instructions there is one round, which does not scatter: a tick more is no finding.
#[test]
fn a_tick_of_counted_instructions_decides_nothing() {
    let found = |cpu: [f64; 2]| {
        let own = |name, placement, cpu: f64| series(name, placement, 0, &[(cpu - 1e-7, 1.0)]);
        let all = vec![
            own("a program", Placement::User, cpu[0]),
            own("IPsec", Placement::Kernel, cpu[1]),
        ];
        link(Unit::BytesPerThousandInstructions, &all).verdict
    };
    assert_eq!(found([0.09, 0.08]), Verdict::NoDifference);
    assert_eq!(found([0.9, 0.6]), Verdict::Choose(Placement::Kernel));
    // Another length of the run may turn that round.
    assert_eq!(found([0.9, 0.8]), Verdict::CannotTell);
}

/// One who ticked so little that its CPU time can't be told took less than the others: these must
/// not win because it is left out.
#[test]
fn who_takes_too_little_to_be_told_is_not_passed_over() {
    let ticks = |cpu: f64, wall: f64| -> Vec<(f64, f64)> { vec![(cpu - 1e-7, wall); 9] };
    let all = vec![
        series("a program", Placement::User, 0, &ticks(0.03, 1.0)),
        series(
            "WireGuard in a program",
            Placement::User,
            0,
            &ticks(0.9, 9.0),
        ),
        series("IPsec", Placement::Kernel, 0, &ticks(0.3, 3.0)),
    ];
    let link = link(Unit::MegabytesPerSecond, &all);
    assert_eq!(link.verdict, Verdict::Choose(Placement::User));
    assert_eq!(link.decided_by, 0);
    assert_eq!(link.rows[0].resource, Resource::Cpu);
}
