use super::*;
use crate::contender::Placement;
use crate::record::Unit;
use crate::record::planted::{self, point, series};

fn record(speed: f64) -> Record {
    let all = vec![series(
        "<one>",
        Placement::Kernel,
        vec![point(0, &[speed; 6])],
    )];
    let unit = Unit::MegabytesPerSecond;
    planted::record(vec![planted::experiment("net/stream", unit, all)])
}

/// Where costs are how many times the same without encryption, the second may take less.
#[test]
fn the_advice_of_a_machine_is_that_of_its_own_page() {
    let of = |name: &str, placement, times: f64| {
        let speeds = [1.0, 1.01, 0.99, 1.0, 1.02, 0.98].map(|one| 100.0 * one / times);
        series(name, placement, vec![point(0, &speeds)])
    };
    let files = |id| {
        let all = vec![
            of("none", Placement::None, 1.0),
            of("none, ext4 in an image", Placement::None, 4.0),
            of("dm-crypt", Placement::Kernel, 4.4),
            of("gocryptfs", Placement::User, 2.0),
        ];
        planted::experiment(id, Unit::MegabytesPerSecond, all)
    };
    let planted = planted::record(["file/write", "file/read"].map(files).into());
    let sent = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/lab/machines");
    let mut machines = read(&sent).unwrap();
    let name = "planted".to_owned();
    machines.push(Machine {
        name,
        record: planted,
    });
    let index = index(&machines);
    let mut known = 0;
    for one in &machines {
        let page = page(&one.record, &published().unwrap());
        for part in page.split("<span class=\"advice\">").skip(1) {
            let told = part.split("</span>").next().unwrap();
            assert!(index.contains(&format!("<small>{told}</small>")), "{told}");
            known += usize::from(told.contains("gocryptfs"));
        }
    }
    assert!(
        known > 0,
        "gocryptfs takes twice what none takes, and less than dm-crypt"
    );
    assert!(!index.contains("the next takes"));
    let counted = "simulated</a> <small>instructions, not time</small>";
    assert!(index.contains(counted) && !index.contains("planted</a> <small>"));
}

#[test]
fn each_machine_has_a_page_and_a_column() {
    let folder = std::env::temp_dir().join(format!("lab-site-{}", std::process::id()));
    let (from, to) = (folder.join("machines"), folder.join("site"));
    fs::create_dir_all(&from).unwrap();
    for (name, speed) in [("fast", 200.0), ("slow", 50.0)] {
        let text = serde_json::to_string(&record(speed)).unwrap();
        fs::write(from.join(format!("{name}.json")), text).unwrap();
    }
    let machines = read(&from).unwrap();
    assert_eq!(write(&machines, &to).unwrap(), 3);
    let page = fs::read_to_string(to.join("index.html")).unwrap();
    assert!(page.contains("data-median=\"200\"") && page.contains("data-median=\"50\""));
    // What goes on until so many bytes are through is divided by as many only.
    let kind = "data-unit=\"MB/s\" data-version=\"2\" data-amount=";
    let kinds = ["200", "50"].map(|speed| format!("{kind}\"{speed}000000\""));
    assert!(kinds.iter().all(|kind| page.contains(kind)), "{page}");
    assert!(page.contains("href=\"slow.html\"") && to.join("slow.html").is_file());
    assert!(page.contains("&lt;one&gt;") && !page.contains("<one>"));
    assert!(page.contains("data-within=\"0.05\"") && page.contains(", by "));

    fs::write(from.join("broken.json"), "{}").unwrap();
    let error = read(&from).err().unwrap().to_string();
    assert!(error.contains("broken.json"), "{error}");
    fs::rename(from.join("broken.json"), from.join("a b.json")).unwrap();
    let error = read(&from).err().unwrap().to_string();
    assert!(error.contains("other letters"), "{error}");
    fs::rename(from.join("a b.json"), from.join("index.json")).unwrap();
    let error = read(&from).err().unwrap().to_string();
    let told = error.contains("index.json: would have the page of all machines");
    assert!(told && !error.contains("letters"), "{error}");
    fs::remove_dir_all(&folder).unwrap();
    assert!(read(&from).is_err());
}
