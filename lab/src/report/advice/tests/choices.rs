//! What is ground enough to choose by.

use std::path::Path;

use super::*;

/// A committed record.
fn committed(name: &str) -> Record {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/lab");
    serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap()
}

/// The quick run told 1.09 times the instructions and the longer one 1.00, for opposite places.
#[test]
fn two_lengths_of_a_run_give_one_advice() {
    for name in ["kernel-debian-6.1.json", "sendfile-debian-6.1.json"] {
        let record = committed(name);
        let found = advice(&record);
        let small = of(&found, "Small requests");
        let user = Verdict::Choose(Placement::User);
        assert_eq!(
            (small.verdict, small.decided_by),
            (user, 1),
            "{name}: {small:?}"
        );
        let text = small.reasons.join(" ");
        assert!(
            text.contains("Counts are of a run of this length"),
            "{text}"
        );
        let is_quick = page(&record, &[]).contains("A quick run (--quick).");
        assert_eq!(is_quick, name.starts_with("kernel"), "{name}");
    }
}

#[test]
fn what_is_written_alone_tells_nothing_of_reading() {
    let found = advice(&committed("kernel-debian-6.1.json"));
    for job in ["Whole disk", "Block device"] {
        // What was read again from memory lies there decrypted.
        let advice = of(&found, job);
        let text = advice.reasons.join(" ");
        assert_eq!(advice.verdict, Verdict::NotMeasured, "{text}");
        assert!(text.contains("read from memory only"), "{text}");
    }
    let image = "none, ext4 in an image";
    let all = vec![
        series(image, Placement::None, 0, &rounds(2.0, 2.0)),
        series("dm-crypt", Placement::Kernel, 0, &rounds(2.4, 2.4)),
    ];
    let written = experiment("file/write", Unit::MegabytesPerSecond, all);
    let found = advice(&record(vec![written]));
    assert_eq!(of(&found, "Block device").verdict, Verdict::NotMeasured);
}

/// Encryption saves no work: where the plain one takes more, that is told, and less is no choice.
#[test]
fn where_encryption_seems_to_save_work_the_page_says_so() {
    let of_plain = |plain: f64| {
        let all = vec![
            series("none", Placement::None, 0, &rounds(plain, plain)),
            series("IPsec", Placement::Kernel, 0, &rounds(1.0, 1.0)),
            series("a program", Placement::User, 0, &rounds(1.2, 1.2)),
        ];
        let unit = Unit::MegabytesPerSecond;
        let both = ["net/stream", "net/copy"].map(|id| experiment(id, unit, all.clone()));
        record(both.into())
    };
    let found = |plain: f64| {
        let link = of(&advice(&of_plain(plain)), "Link between two sites").clone();
        (link.verdict, link.reasons.join(" "))
    };
    let told = |times: &str| format!("Without encryption it took {times} times as much");
    let kernel = Verdict::Choose(Placement::Kernel);
    let (verdict, text) = found(0.9);
    assert_eq!(verdict, kernel);
    assert!(!text.contains("Without encryption"), "{text}");
    let (verdict, text) = found(1.1);
    assert_eq!(verdict, kernel, "they differ by more than that");
    assert!(text.contains(&told("1.10")), "{text}");
    assert!(page(&of_plain(1.1), &[]).contains(&told("1.10")));
    let (verdict, text) = found(1.3);
    assert_eq!(verdict, Verdict::CannotTell, "{text}");
    assert!(text.contains(&told("1.30")), "{text}");
    // The same of what is compared with its own plain one.
    let device = |crypt: f64| {
        let image = "none, ext4 in an image";
        let all = vec![
            series(image, Placement::None, 0, &rounds(2.0, 2.0)),
            series("dm-crypt", Placement::Kernel, 0, &rounds(crypt, crypt)),
        ];
        let unit = Unit::MegabytesPerSecond;
        let both = ["file/write", "file/read"].map(|id| experiment(id, unit, all.clone()));
        let device = of(&advice(&record(both.into())), "Block device").clone();
        device.reasons.join(" ")
    };
    assert!(device(1.6).contains(&told("1.25")), "{}", device(1.6));
    assert!(!device(2.4).contains("Without encryption"));
}

/// A run on a kernel without IPsec and WireGuard, and without the programs for disks.
#[test]
fn who_did_not_run_on_a_link_is_named_with_what_did() {
    let missing = |name: &str, placement| {
        let mut one = series(name, placement, 0, &[]);
        one.points.clear();
        let why = Availability::cannot(format!("no {name} here"), "another kernel");
        one.contender.availability = why;
        one
    };
    let unit = Unit::MegabytesPerSecond;
    let link = vec![
        series("none, TCP", Placement::None, 0, &rounds(0.5, 0.5)),
        series("TLS, rustls", Placement::User, 0, &rounds(1.0, 1.0)),
        missing("IPsec", Placement::Kernel),
    ];
    let disk = vec![
        missing("NBD", Placement::None),
        missing("NBD over TLS", Placement::User),
    ];
    let links = ["net/stream", "net/copy"].map(|id| experiment(id, unit, link.clone()));
    let disks = ["net/block-write", "net/block-read"];
    let disks = disks.map(|id| experiment(id, unit, disk.clone()));
    let record = record(links.into_iter().chain(disks).collect());
    let found = advice(&record);
    let link = of(&found, "Link between two sites");
    assert_eq!(link.verdict, Verdict::NotMeasured);
    let text = link.reasons.join(" ");
    assert!(text.contains("none that does this could run"), "{text}");
    assert!(text.contains("do less than it asks for: TLS, rustls."));
    assert_eq!(link.absent.len(), 1, "{link:?}");
    let disk = of(&found, "Disk over a network");
    assert_eq!(disk.absent.len(), 1, "{disk:?}");
    let page = page(&record, &[]);
    assert!(page.contains("id=\"advice\"") && page.contains("no IPsec here. It would need"));
    assert!(page.contains("no NBD over TLS here"));
}

/// Less than what the lab calls no difference is no choice, however sure it is.
#[test]
fn two_percent_are_no_choice() {
    let all = transfer(&rounds(0.72 / 1.02, 1.0));
    let streams = of(&all, "Large streams");
    assert_ne!(streams.verdict, Verdict::Choose(Placement::Client));
    // A few rounds further off keep it from being called the same.
    let mut some = rounds(0.72 / 1.02, 1.0);
    some.iter_mut().take(4).for_each(|one| one.0 /= 1.15);
    let record = transferred(&some);
    let found = advice(&record);
    let streams = of(&found, "Large streams");
    let compared = streams.rows[0].compared.unwrap();
    assert_eq!(compared.finding, Finding::More, "{compared:?}");
    assert_eq!(streams.verdict, Verdict::CannotTell);
    assert!(page(&record, &[]).contains("times the CPU time is too little to choose by."));
}

/// What is advised by one resource may take more of another: page and card say so.
#[test]
fn what_is_advised_tells_what_it_takes_more_of() {
    let record = transferred(&rounds(0.08, 2.0));
    let found = advice(&record);
    let streams = of(&found, "Large streams");
    assert_eq!(streams.verdict, Verdict::Choose(Placement::Client));
    let text = streams.reasons.join(" ");
    assert!(
        text.contains("Of what is advised, sealed takes 2.00 s/GB: 2.00 times the best."),
        "{text}"
    );
    assert!(page(&record, &[]).contains("times the CPU time. By time: user space."));
}

/// A request for 15 bytes says nothing of a stream.
#[test]
fn streams_are_not_judged_by_small_requests() {
    let mut record = transferred(&rounds(0.72, 1.0));
    let small = vec![
        series("TLS", Placement::User, 15, &rounds(1.0, 1.0)),
        series("sealed", Placement::Client, 15, &rounds(1.0, 5.0)),
    ];
    let mut small = experiment("sendfile/request", Unit::MicrosecondsPerRequest, small);
    small.axis = Axis::FileBytes;
    record.experiments.push(small);
    let found = advice(&record);
    assert_eq!(of(&found, "Large streams").verdict, Verdict::NoDifference);
}

/// TLS protects what its own connection carries.
#[test]
fn a_link_is_judged_by_what_protects_all_of_it() {
    let all = [
        series("TLS, rustls", Placement::User, 0, &rounds(1.0, 1.0)),
        series("kernel TLS", Placement::Kernel, 0, &rounds(1.0, 1.0)),
        series("SSH tunnel", Placement::User, 0, &rounds(1.1, 1.1)),
        series("IPsec", Placement::Kernel, 0, &rounds(2.0, 2.0)),
        series(
            "WireGuard in a program",
            Placement::User,
            0,
            &rounds(4.0, 4.0),
        ),
    ];
    let link = link(Unit::MegabytesPerSecond, &all);
    assert_eq!(link.verdict, Verdict::Choose(Placement::Kernel));
    assert_eq!(link.ran, ["IPsec", "WireGuard in a program"]);
}

/// Of two that can't be told apart, the cheaper median is no better one: both are named.
#[test]
fn who_can_not_be_told_from_the_cheapest_is_named_with_it() {
    let mut record = transferred(&rounds(0.08, 1.0));
    let x = 100_000_000;
    let mut shaken = rounds(0.051, 0.51);
    shaken.rotate_left(1);
    let all = &mut record.experiments[0].series;
    all.push(series("none, sendfile", Placement::None, x, &shaken));
    all.push(series(
        "none, slowly",
        Placement::None,
        x,
        &rounds(0.1, 1.0),
    ));
    let found = advice(&record);
    let streams = of(&found, "Large streams");
    let floor = streams.rows[0].at(Placement::None).unwrap();
    assert_eq!(
        (floor.contender.as_str(), &floor.alike[..]),
        ("none", &["none, sendfile".to_owned()][..])
    );
    let user = streams.rows[0].at(Placement::User).unwrap();
    assert_eq!(user.alike, Vec::<String>::new(), "one takes thrice as much");
    let text = streams.reasons.join(" ");
    assert!(text.contains("differ too little to choose by: none · none, sendfile (none)."));
    assert!(page(&record, &[]).contains("<small>none, or none, sendfile</small>"));
}
