//! A run: a kernel is booted with the lab among its files, and what it says is brought back.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Doing, LabError, Result};
use crate::host::peers::INSIDE;
use crate::host::processor::RUNS_IN_ITS_MACHINE;
use crate::host::programs::look_below;
use crate::host::undo::say;
use crate::kernel::accelerator::Accelerator;
use crate::kernel::machine::{Boot, Failure, Outcome, boot};
use crate::kernel::packages::Packages;
use crate::kernel::release::{self, Choice, Kernel};
use crate::kernel::request::{Request, Work};
use crate::kernel::side_by_side::side_by_side;
use crate::kernel::stage::Stage;
use crate::measuring::progress::{Progress, TELL};
use crate::record::Record;

/// The packages of programs that the lab needs around and inside of the virtual machine.
const TOOLS: [&str; 6] = [
    "busybox-static",
    "cryptsetup-bin",
    "iproute2",
    "kmod",
    "qemu-system-x86",
    "wireguard-tools",
];

/// Runs the lab inside, and gives its record.
pub fn measure(request: &Request) -> Result<Record> {
    let cache = prepare(request)?;
    measure_on(request, &cache, &named(request, &cache)?)
}

pub(super) fn measure_on(request: &Request, cache: &Path, kernel: &Kernel) -> Result<Record> {
    let outcomes = on_what_works(request, |accelerator| {
        let works: Vec<(String, String)> = works(&request.work, accelerator)
            .iter()
            .map(|work| (work.title(), lab_script(request, work, accelerator)))
            .collect();
        run(request, cache, kernel, accelerator, &works)
    })?;
    let records: Result<Vec<Record>> = outcomes.into_iter().map(record).collect();
    Record::join(records?).ok_or_else(|| LabError::Data {
        file: "the experiments".into(),
        what: "are none".into(),
    })
}

fn record(outcome: Outcome) -> Result<Record> {
    let Some(record) = outcome.record.filter(|_| outcome.status == 0) else {
        return Err(failed(outcome.status, &outcome.said));
    };
    serde_json::from_str(&record).map_err(|error| LabError::Data {
        file: "the record of the virtual machine".into(),
        what: error.to_string(),
    })
}

/// Runs a shell script inside instead of experiments; gives what it printed.
///
/// # Errors
///
/// When it ends with another status than 0, and when the machine does not run.
pub fn run_script(request: &Request, script: &str) -> Result<Vec<String>> {
    let cache = prepare(request)?;
    let kernel = named(request, &cache)?;
    let outcomes = on_what_works(request, |accelerator| {
        let work = (request.work.title(), script.to_owned());
        run(request, &cache, &kernel, accelerator, &[work])
    })?;
    let mut said = Vec::new();
    for outcome in outcomes {
        if outcome.status != 0 {
            return Err(failed(outcome.status, &outcome.said));
        }
        said.extend(outcome.said);
    }
    Ok(said)
}

fn failed(status: i32, said: &[String]) -> LabError {
    let last = said.len().saturating_sub(8);
    LabError::Program {
        command: "the lab in the virtual machine".into(),
        what: format!("exit status {status}: {}", said[last..].join("\n  ")),
    }
}

/// What each machine does. Where instructions are counted none disturbs another, so each
/// experiment gets a machine of its own: they run side by side, and the figures of one don't depend
/// on which others were asked for. Where time is measured, one follows the other.
fn works(work: &Work, accelerator: Accelerator) -> Vec<Work> {
    match work {
        Work::Experiments(wanted) if accelerator == Accelerator::Tcg => wanted
            .iter()
            .map(|one| Work::Experiments(vec![one]))
            .collect(),
        other => vec![other.clone()],
    }
}

/// What the machine does: measure. A processor that counts instructions gives the same figures each
/// time, so one round tells all.
fn lab_script(request: &Request, work: &Work, accelerator: Accelerator) -> String {
    let counts = accelerator.unit().counts_instructions();
    let rounds = request.rounds.or(counts.then_some(1));
    let work = match work {
        Work::Experiments(wanted) => format!("all --only {}", wanted.join(",")),
        Work::LoopOfA => "loop-of-a".to_owned(),
    };
    let mut words = vec![format!(
        "{TELL}=1 {INSIDE}=1 coffer-lab {work} --json /tmp/record.json"
    )];
    words.extend(request.quick.then(|| "--quick".to_owned()));
    words.extend(rounds.map(|rounds| format!("--rounds {rounds}")));
    words.extend(counts.then(|| "--instructions".to_owned()));
    words.push(">/dev/null".to_owned());
    words.join(" ")
}

/// Makes the cache, with the programs that this system lacks; gives its full path.
pub(super) fn prepare(request: &Request) -> Result<PathBuf> {
    // Before anything is fetched for it.
    Choice::parse(&request.kernel)?;
    if !RUNS_IN_ITS_MACHINE {
        return Err(LabError::Data {
            file: "this program".into(),
            what: "can't run in the virtual machine, which is one of x86-64".into(),
        });
    }
    let doing = || format!("making {}", request.cache.display());
    fs::create_dir_all(&request.cache).doing(doing)?;
    let cache = request.cache.canonicalize().doing(doing)?;
    let _alone = lock(&cache)?;
    obtain_tools(&cache)?;
    Ok(cache)
}

/// Waits until no other run fills the cache; as long as the file is open, none does.
pub(super) fn lock(cache: &Path) -> Result<fs::File> {
    let path = cache.join("lock");
    let doing = || format!("locking {}", path.display());
    let file = fs::File::create(&path).doing(doing)?;
    if file.try_lock().is_err() {
        say(&format!(
            "coffer-lab: another run fills {}; waiting",
            cache.display()
        ));
        file.lock().doing(doing)?;
    }
    Ok(file)
}

fn named(request: &Request, cache: &Path) -> Result<Kernel> {
    let _alone = lock(cache)?;
    release::obtain(&Choice::parse(&request.kernel)?, cache)
}

/// Where KVM starts no kernel, and it was not asked for, instructions are counted instead.
fn on_what_works<T>(
    request: &Request,
    run: impl Fn(Accelerator) -> std::result::Result<T, Failure>,
) -> Result<T> {
    let mut accelerator = request.accelerator.unwrap_or_else(Accelerator::found);
    let mut done = run(accelerator);
    if matches!(done, Err(Failure::NeverUp))
        && request.accelerator.is_none()
        && accelerator == Accelerator::Kvm
    {
        say("coffer-lab: KVM starts no kernel here; counting instructions instead");
        accelerator = Accelerator::Tcg;
        done = run(accelerator);
    }
    done.map_err(|failure| match failure {
        Failure::Lab(error) => error,
        Failure::NeverUp => LabError::Program {
            command: "the virtual machine".into(),
            what: format!("{} did not start the kernel", accelerator.name()),
        },
    })
}

/// Boots a machine for each of `works`, which have a title and a script.
fn run(
    request: &Request,
    cache: &Path,
    kernel: &Kernel,
    accelerator: Accelerator,
    works: &[(String, String)],
) -> std::result::Result<Vec<Outcome>, Failure> {
    let stage = Stage::new(request, cache, kernel, accelerator)?;
    let mut boots = Vec::new();
    for (number, (title, script)) in works.iter().enumerate() {
        boots.push(Boot {
            accelerator,
            image: kernel.started_by(accelerator),
            folder: stage.machine(number, script)?,
            title,
        });
    }
    side_by_side(&boots, accelerator.machines_at_once(), boot)
}

/// Programs that this system lacks, unpacked below the cache.
fn obtain_tools(cache: &Path) -> Result<()> {
    let tools = cache.join("tools");
    if !tools.is_dir() {
        let _progress = Progress::open("Fetching and unpacking QEMU and what it needs");
        let system = Packages::of_this_system(&cache.join("apt/system"))?;
        system.unpack_with_needs(&TOOLS, &tools)?;
    }
    look_below(&tools);
    Ok(())
}

/// Where packages are kept, unless told otherwise.
pub fn default_cache() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let base = set("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || set("HOME").map(|home| Path::new(&home).join(".cache"));
    base.or_else(home)
        .unwrap_or_else(|| "/var/tmp".into())
        .join("coffer-lab")
}
