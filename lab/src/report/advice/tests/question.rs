//! Which placements remain in question.

use fastrand::Rng;

use super::*;

const LARGE: u64 = 100_000_000;

/// What a server takes for a gigabyte, in CPU and in wall time alike.
fn both(costs: &[f64]) -> Vec<(f64, f64)> {
    costs.iter().map(|&cost| (cost, cost)).collect()
}

/// Sent by no encryption, and by a contender of each placement.
fn sent(plain: &[f64], [user, kernel, client]: [&[f64]; 3]) -> Record {
    let all = vec![
        series("plain", Placement::None, LARGE, &both(plain)),
        series("TLS", Placement::User, LARGE, &both(user)),
        series("kernel TLS", Placement::Kernel, LARGE, &both(kernel)),
        series("sealed", Placement::Client, LARGE, &both(client)),
    ];
    let mut sent = experiment("sendfile/transfer", Unit::MegabytesPerSecond, all);
    sent.axis = Axis::FileBytes;
    record(vec![sent])
}

fn streams(record: &Record) -> Advice {
    of(&advice(record), "Large streams").clone()
}

fn times(costs: &[f64; 9], factor: f64) -> [f64; 9] {
    costs.map(|one| one * factor)
}

/// A machine that slows down after five rounds.
const SLOWED: [f64; 9] = [
    0.1, 0.1002, 0.1004, 0.1006, 0.1008, 0.202, 0.2024, 0.2028, 0.2032,
];

const CALM: [f64; 9] = [1.0, 1.01, 0.99, 1.005, 0.995, 1.002, 0.998, 1.0, 1.001];

/// By its median the client takes the least, for the kernel was disturbed in a fast round. In each
/// of the others the kernel took less.
#[test]
fn who_takes_less_in_each_round_is_not_passed_over() {
    let mut kernel = times(&SLOWED, 0.8);
    kernel[0] = 1.0;
    let plain = times(&SLOWED, 0.5);
    let record = sent(&plain, [&times(&SLOWED, 1.2), &kernel, &SLOWED]);
    let found = streams(&record);
    assert_eq!(found.verdict, Verdict::Choose(Placement::Kernel));
    assert!(page(&record, &[]).contains("In the kernel: sealed takes 1.25 times the CPU time."));
    let cells: Vec<f64> = found.rows[0].best.iter().map(Best::times).collect();
    assert_eq!(cells[0], 1.0, "{cells:?}");
    assert!(cells[1..3].iter().all(|times| *times > 1.2), "{cells:?}");
    // And where only two are near each other.
    let mut user = times(&SLOWED, 0.9);
    user[0] = 1.0;
    let found = streams(&sent(&plain, [&user, &times(&SLOWED, 3.0), &SLOWED]));
    assert_eq!(found.verdict, Verdict::Choose(Placement::User));
    // A virtual machine that is throttled, and a burst of a neighbour.
    let throttled = [0.1, 0.1, 0.1, 0.1, 0.1, 0.135, 0.135, 0.135, 0.135];
    let mut kernel = times(&throttled, 0.92);
    kernel[1] *= 1.6;
    let user = times(&throttled, 1.08);
    let record = sent(&times(&throttled, 0.5), [&user, &kernel, &throttled]);
    let found = streams(&record);
    assert_eq!(found.verdict, Verdict::Choose(Placement::Kernel));
    assert!(
        found.reasons[0].contains("kernel TLS (kernel) 0.12"),
        "{found:?}"
    );
}

/// One that scatters so much that it may take less than the best stops the choice, and is named.
#[test]
fn who_can_not_be_told_from_the_best_remains() {
    let wild = [0.7, 1.9, 0.75, 1.6, 1.25, 2.2, 0.6, 1.5, 1.3];
    let record = sent(&times(&CALM, 0.5), [&times(&CALM, 1.2), &wild, &CALM]);
    let found = streams(&record);
    assert_eq!(found.verdict, Verdict::CannotTell);
    assert_eq!(found.open, [Placement::Kernel, Placement::Client]);
    let page = page(&record, &[]);
    let sentence = "Can’t tell between the kernel and the client: the samples scatter too much.";
    assert!(page.contains(sentence), "{:?}", found.reasons);
    assert!(
        found.reasons[0].contains("the second takes 1.20 times as much"),
        "{found:?}"
    );
    // Also where it is no more than another contender of the placement that takes more.
    let mut record = sent(&times(&CALM, 0.5), [&times(&CALM, 1.2), &[9.0; 9], &CALM]);
    record.experiments[0]
        .series
        .push(series("HTTPS", Placement::User, LARGE, &both(&wild)));
    let found = streams(&record);
    assert_eq!(found.open, [Placement::User, Placement::Client]);
    assert_eq!(found.rows[0].at(Placement::User).unwrap().alike, ["HTTPS"]);
}

/// A placement that takes thrice the CPU time does not come back because it takes less time.
#[test]
fn what_a_resource_rules_out_stays_out() {
    let rounds = |cpu: f64, wall: f64| -> Vec<(f64, f64)> {
        CALM.iter().map(|one| (one * cpu, one * wall)).collect()
    };
    let of_kernel = |wall: f64| {
        let all = vec![
            series("plain", Placement::None, LARGE, &rounds(0.1, 0.1)),
            series("TLS", Placement::User, LARGE, &rounds(1.0, 1.0)),
            series("kernel TLS", Placement::Kernel, LARGE, &rounds(1.0, wall)),
            series("sealed", Placement::Client, LARGE, &rounds(3.0, 0.5)),
        ];
        record(vec![experiment(
            "sendfile/transfer",
            Unit::MegabytesPerSecond,
            all,
        )])
    };
    let record = of_kernel(1.3);
    let found = streams(&record);
    assert_eq!(found.verdict, Verdict::Choose(Placement::User));
    assert_eq!(found.decided_by, 1);
    let sentence = "In user space: kernel TLS takes 1.30 times the time. Not at the client, by CPU \
                    time.";
    assert!(page(&record, &[]).contains(sentence), "{:?}", found.reasons);
    let same = of_kernel(1.0);
    assert_eq!(streams(&same).verdict, Verdict::NoDifference);
    let sentence = "No difference between user space and the kernel: they are within 5 %.";
    assert!(page(&same, &[]).contains(sentence));
}

/// Two that go up and down by 4 %, one when the other does not, take the same as a third; between
/// them it is 8 %.
#[test]
fn no_difference_is_said_where_all_that_remain_take_the_same() {
    let (up, down) = (1.04, 0.96);
    let one = [up, down, up, down, up, down, up, down, up];
    let other = [down, up, down, up, down, up, down, up, down];
    let verdict = |client: &[f64]| streams(&sent(&[0.5; 9], [&one, &[1.0; 9], client])).verdict;
    assert_eq!(verdict(&one), Verdict::NoDifference);
    assert_eq!(verdict(&other), Verdict::CannotTell);
}

/// Forty megabytes on a link take IPsec three ticks of the kernel's clock, and a program forty.
#[test]
fn who_takes_too_few_ticks_to_be_told_does_not_lose_by_it() {
    let ticks = |cpu: f64, wall: f64| -> Vec<(f64, f64)> { vec![(cpu - 1e-7, wall); 6] };
    let of = |kernel: f64, user: f64| {
        let all = vec![
            series("none, TCP", Placement::None, 0, &ticks(0.03, 0.5)),
            series("IPsec", Placement::Kernel, 0, &ticks(kernel, 3.0)),
            series(
                "WireGuard in a program",
                Placement::User,
                0,
                &ticks(user, 1.0),
            ),
        ];
        let unit = Unit::MegabytesPerSecond;
        record(
            ["net/stream", "net/copy"]
                .map(|id| experiment(id, unit, all.clone()))
                .into(),
        )
    };
    let link = |record: &Record| super::of(&advice(record), "Link between two sites").clone();
    let record = of(0.03, 0.4);
    let found = link(&record);
    assert_eq!(found.verdict, Verdict::Choose(Placement::Kernel));
    assert_eq!(found.decided_by, 0);
    let page = page(&record, &[]);
    let sentence = "In the kernel: WireGuard in a program takes at least 8.00 times the CPU time.";
    assert!(page.contains(sentence), "{:?}", found.reasons);
    assert!(page.contains("≥ 8.0 ×"));
    let text = &found.reasons[0];
    assert!(
        text.contains("IPsec (kernel) less than 0.10 against"),
        "{text}"
    );
    // What is near to the bound may be near to it.
    let near = link(&of(0.03, 0.05));
    assert_eq!(
        (near.verdict, near.decided_by),
        (Verdict::Choose(Placement::User), 1)
    );
    let text = &near.reasons[0];
    assert!(text.contains("can’t tell, at most 1.00 times"), "{text}");
    // Where none is told, the card says so.
    let coarse = link(&of(0.03, 0.02));
    assert_eq!(coarse.rows[0].resource, Resource::Time);
    let text = &coarse.reasons[0];
    for part in [
        "CPU s/GB of both ends: left out",
        "ticks",
        "IPsec · WireGuard in a program",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

/// What differs by no more than what drift or noise made of no encryption is no choice.
#[test]
fn what_no_encryption_may_take_is_no_ground_to_choose() {
    let of = |user: [f64; 9], plain: [f64; 9]| {
        let record = sent(&plain, [&user, &[5.0; 9], &[1.0; 9]]);
        let text = page(&record, &[]);
        (streams(&record).verdict, text)
    };
    let sentence = "none of them is told to take more CPU time than the best without encryption.";
    let user = [1.08, 1.09, 1.12, 1.14, 1.30, 1.31, 1.33, 1.36, 1.40];
    let plain = [1.1, 1.12, 1.15, 1.2, 1.28, 1.6, 1.7, 1.8, 1.9];
    let (verdict, page) = of(user, plain);
    assert_eq!(verdict, Verdict::CannotTell);
    assert!(page.contains(sentence));
    let user = [1.19, 1.2, 1.21, 1.2, 1.2, 1.19, 1.21, 1.2, 1.2];
    let (verdict, page) = of(user, [0.95, 0.99, 1.9, 2.0, 2.0, 2.1, 2.4, 2.8, 3.0]);
    assert_eq!(verdict, Verdict::CannotTell);
    assert!(page.contains(sentence));
    assert_eq!(of(user, [0.5; 9]).0, Verdict::Choose(Placement::Client));
}

/// No encryption takes what its best contender takes: another that scatters is no ground to doubt
/// what takes more than that one. But it may take less itself than what encrypts.
#[test]
fn another_without_encryption_can_take_less_but_not_make_it_take_more() {
    let wild = [0.3, 0.4, 0.6, 2.8, 0.45, 2.9, 0.35, 3.0, 0.9];
    let dearer = "Without encryption it took 1.10 times as much";
    let found = |plain: f64, other: Option<&[f64]>| {
        let plain = times(&CALM, plain);
        let mut record = sent(&plain, [&times(&CALM, 1.2), &[5.0; 9], &CALM]);
        let other = other.map(|other| series("sendfile", Placement::None, LARGE, &both(other)));
        record.experiments[0].series.extend(other);
        let verdict = streams(&record).verdict;
        assert_eq!(verdict, Verdict::Choose(Placement::Client));
        page(&record, &[]).contains(dearer)
    };
    assert!(!found(0.5, None) && !found(0.5, Some(&wild)));
    assert!(found(1.1, None) && found(1.1, Some(&[1.3; 9])));
    assert!(!found(1.1, Some(&times(&wild, 2.0))));
}

/// A program takes four ticks of the kernel's clock, and no encryption more: how much more is not
/// told.
#[test]
fn what_takes_more_than_a_bound_takes_that_at_least() {
    let told = |plain: f64, user: [f64; 9]| {
        let own = |name, placement, cpu: [f64; 9]| {
            let rounds = cpu.map(|cpu| (cpu - 1e-7, 1.0));
            series(name, placement, 0, &rounds)
        };
        let all = vec![
            own("none, TCP", Placement::None, [plain; 9]),
            own("IPsec", Placement::Kernel, [0.04; 9]),
            own("WireGuard in a program", Placement::User, user),
        ];
        let both = ["net/stream", "net/copy"];
        let both = both.map(|id| experiment(id, Unit::MegabytesPerSecond, all.clone()));
        let record = record(both.into());
        page(&record, &[])
    };
    let page = told(0.2, [0.8; 9]);
    let sentence = "Without encryption it took at least 4.00 times as much.";
    assert!(page.contains(sentence), "{page}");
    // That may be much more than what is told: it is not too little to choose by.
    let shaken = [1.01, 1.02, 1.03, 1.035, 1.04, 1.06, 1.08, 1.1, 1.1];
    let page = told(0.02, times(&shaken, 0.05));
    assert!(!page.contains("is too little to choose by"), "{page}");
    assert!(page.contains("CPU time came in too few ticks"), "{page}");
}

/// Who has no samples of a direction did not do it for nothing.
#[test]
fn a_direction_without_samples_is_not_free() {
    let user = series("aws-lc-rs", Placement::User, 1024, &rounds(1.0, 1.0));
    let kernel = series("AF_ALG", Placement::Kernel, 1024, &rounds(1.5, 1.5));
    let unit = Unit::MegabytesPerCpuSecond;
    let ids = ["raw/aes-256-gcm/encrypt", "raw/aes-256-gcm/decrypt"];
    let mut record = record(
        ids.map(|id| experiment(id, unit, vec![user.clone(), kernel.clone()]))
            .into(),
    );
    record.experiments[0].series[1].points[0].samples.clear();
    let all = advice(&record);
    let small = of(&all, "Many small objects");
    assert_eq!(small.verdict, Verdict::OnlyOneRan(Placement::User));
    assert_eq!(small.ran, ["aws-lc-rs"]);
    let text = small.reasons.join(" ");
    assert!(
        text.contains("Left out, since figures of a direction or of a round are missing: AF_ALG.")
    );
}

/// "1.00 times the best" is no news.
#[test]
fn what_is_advised_is_said_to_take_more_only_where_another_takes_less() {
    let own = |name, placement, wall: f64| {
        let mut large = series(name, placement, LARGE, &rounds(1.0, 1.0));
        large
            .points
            .extend(series(name, placement, 1_000_000, &rounds(1.0, wall)).points);
        large
    };
    let all = vec![
        own("TLS", Placement::User, 2.0),
        own("sealed", Placement::Client, 1.0),
    ];
    let sent = experiment("sendfile/transfer", Unit::MegabytesPerSecond, all);
    let found = streams(&record(vec![sent]));
    assert_eq!(found.verdict, Verdict::Choose(Placement::Client));
    assert_eq!(found.decided_by, 2);
    let text = found.reasons.join(" ");
    assert!(!text.contains("Of what is advised"), "{text}");
}

/// A normal deviate (Box and Muller).
fn deviate(random: &mut Rng) -> f64 {
    let turn = std::f64::consts::TAU * random.f64();
    let share: f64 = 1.0 - random.f64();
    let far = -2.0 * share.ln();
    far.sqrt() * turn.cos()
}

/// Rounds of placements whose true costs are known, on a machine that drifts by a quarter.
fn drawn(random: &mut Rng, rounds: usize, planted: [(f64, f64); 3]) -> Record {
    let drift = (0..rounds).map(|_| (0.25 * deviate(random)).exp());
    let drift: Vec<f64> = drift.collect();
    let costs = planted.map(|(truth, scatter)| {
        let each = drift.iter();
        let each = each.map(|drift| drift * truth * (scatter * deviate(random)).exp());
        each.collect::<Vec<f64>>()
    });
    let plain: Vec<f64> = drift.iter().map(|one| one / 2.0).collect();
    sent(&plain, [0, 1, 2].map(|at| &costs[at][..]))
}

/// Where one placement scatters by a third, where all take the same, and where one takes less: a
/// choice of one that does not take the least is as rare as an interval without the truth.
#[test]
fn a_wrong_choice_is_as_rare_as_an_interval_promises() {
    let all = [
        [(1.0, 0.01), (1.1, 0.01), (1.0, 0.3)],
        [(1.05, 0.02), (1.15, 0.02), (1.0, 0.25)],
        [(1.0, 0.02), (1.0, 0.02), (1.0, 0.02)],
        [(1.0, 0.02), (1.3, 0.02), (1.4, 0.02)],
    ];
    let places = [Placement::User, Placement::Kernel, Placement::Client];
    let mut random = Rng::with_seed(11);
    for (rounds, trials) in [(6, 300), (9, 60)] {
        for planted in all {
            let choices = (0..trials).filter_map(|_| {
                let found = streams(&drawn(&mut random, rounds, planted));
                match found.verdict {
                    Verdict::Choose(place) => places.iter().position(|one| *one == place),
                    _ => None,
                }
            });
            let choices: Vec<usize> = choices.collect();
            let takes_least = |at: &usize| {
                let cost = planted[*at].0;
                let as_cheap = planted.iter().filter(|(other, _)| *other <= cost);
                as_cheap.count() == 1
            };
            let right = choices.iter().filter(|at| takes_least(at)).count();
            let wrong = choices.len() - right;
            let told = format!("{rounds} rounds of {planted:?}: {right} right, {wrong} wrong");
            assert!(wrong * 20 <= trials, "{told}");
            if planted[1].0 == 1.3 {
                assert_eq!(right, trials, "{told}");
            }
        }
    }
}
