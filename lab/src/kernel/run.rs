//! A run: a kernel is booted with the lab among its files, and what it says is brought back.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Doing, LabError, Result};
use crate::kernel::accelerator::Accelerator;
use crate::kernel::machine::{Boot, Failure, Outcome, boot};
use crate::kernel::packages::Packages;
use crate::kernel::release::{Choice, Kernel};
use crate::kernel::tree::Tree;
use crate::kernel::{modules, own_module, release};
use crate::programs::{command, find, look_below, run as run_program};
use crate::progress::TELL;
use crate::record::{Record, Unit};
use crate::undo::Undo;

/// The packages of programs that the lab needs around and inside of the virtual machine.
const TOOLS: [&str; 6] = [
    "busybox-static",
    "cryptsetup-bin",
    "iproute2",
    "kmod",
    "qemu-system-x86",
    "wireguard-tools",
];

/// Programs that the experiments start inside.
const PROGRAMS: [&str; 9] = [
    "cryptsetup",
    "insmod",
    "ip",
    "losetup",
    "mkfs.ext4",
    "modprobe",
    "mount",
    "umount",
    "wg",
];

/// Programs that come along where they are found (scripts/install-lab-peers unpacks them).
const PEERS: [&str; 6] = [
    "age",
    "age-keygen",
    "fusermount",
    "gocryptfs",
    "openssl",
    "wireguard-go",
];

/// Runs of this process, each with a folder of its own.
static RUNS: AtomicU32 = AtomicU32::new(0);

const INIT: &str = include_str!("init.sh");

/// What to run, and in which machine.
#[derive(Debug, Clone)]
pub struct Request {
    /// `6.1`, `backports`, or the path of a kernel.
    pub kernel: String,
    /// None: the best that works.
    pub accelerator: Option<Accelerator>,
    /// What is done inside.
    pub work: Work,
    /// See [`Effort`](crate::rounds::Effort).
    pub quick: bool,
    /// Rounds; None for as many as the unit needs.
    pub rounds: Option<u16>,
    /// Where packages are kept.
    pub cache: PathBuf,
    /// Whether the folder of the run is kept.
    pub keep: bool,
    /// The lab's program, to run inside.
    pub lab: PathBuf,
}

/// What the lab does inside.
#[derive(Debug, Clone)]
pub enum Work {
    /// Its experiments, by their words: `raw`, `net`, …
    Experiments(Vec<&'static str>),
    /// The loop of A alone.
    LoopOfA,
}

/// Runs the lab inside, and gives its record.
pub fn measure(request: &Request) -> Result<Record> {
    measure_on(request, &named(request)?)
}

pub(super) fn measure_on(request: &Request, kernel: &Kernel) -> Result<Record> {
    let script = |accelerator: Accelerator| lab_script(request, accelerator);
    let outcome = run(request, kernel, &script)?;
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
    let outcome = run(request, &named(request)?, &|_| script.to_owned())?;
    match outcome.status {
        0 => Ok(outcome.said),
        status => Err(failed(status, &outcome.said)),
    }
}

fn failed(status: i32, said: &[String]) -> LabError {
    let last = said.len().saturating_sub(8);
    LabError::Program {
        command: "the lab in the virtual machine".into(),
        what: format!("exit status {status}: {}", said[last..].join("\n  ")),
    }
}

/// What the machine does: measure. A processor that counts instructions gives the same figures each
/// time, so one round tells all.
fn lab_script(request: &Request, accelerator: Accelerator) -> String {
    let counts = accelerator.unit() == Unit::BytesPerThousandInstructions;
    let rounds = request.rounds.or(counts.then_some(1));
    let work = match &request.work {
        Work::Experiments(wanted) => format!("all --only {}", wanted.join(",")),
        Work::LoopOfA => "loop-of-a".to_owned(),
    };
    let mut words = vec![format!(
        "{TELL}=1 coffer-lab {work} --json /tmp/record.json"
    )];
    words.extend(request.quick.then(|| "--quick".to_owned()));
    words.extend(rounds.map(|rounds| format!("--rounds {rounds}")));
    words.extend(counts.then(|| "--instructions".to_owned()));
    words.push(">/dev/null".to_owned());
    words.join(" ")
}

/// Makes the cache, with the programs that this system lacks; gives its full path.
pub(super) fn prepare(request: &Request) -> Result<PathBuf> {
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
        eprintln!("coffer-lab: another run fills {}; waiting", cache.display());
        file.lock().doing(doing)?;
    }
    Ok(file)
}

fn named(request: &Request) -> Result<Kernel> {
    let cache = prepare(request)?;
    let _alone = lock(&cache)?;
    release::obtain(&Choice::parse(&request.kernel)?, &cache)
}

fn run(
    request: &Request,
    kernel: &Kernel,
    script: &dyn Fn(Accelerator) -> String,
) -> Result<Outcome> {
    let cache = prepare(request)?;
    let number = RUNS.fetch_add(1, Ordering::Relaxed);
    let folder = cache.join(format!("run-{}-{number}", std::process::id()));
    fs::create_dir_all(&folder).doing(|| format!("making {}", folder.display()))?;
    let gone = folder.clone();
    let remove = Undo::by(move || drop(fs::remove_dir_all(gone)));
    let wanted = request.accelerator.unwrap_or_else(Accelerator::found);
    let outcome = match start(request, kernel, wanted, &folder, &script(wanted)) {
        Err(Failure::NeverUp) if request.accelerator.is_none() && wanted == Accelerator::Kvm => {
            eprintln!("coffer-lab: KVM starts no kernel here; counting instructions instead");
            let counting = Accelerator::Tcg;
            start(request, kernel, counting, &folder, &script(counting))
        }
        other => other,
    };
    if request.keep {
        eprintln!("coffer-lab: kept {}", folder.display());
        remove.forget();
    }
    outcome.map_err(|failure| match failure {
        Failure::Lab(error) => error,
        Failure::NeverUp => LabError::Program {
            command: "the virtual machine".into(),
            what: format!("{} did not start {}", wanted.name(), kernel.image.display()),
        },
    })
}

fn start(
    request: &Request,
    kernel: &Kernel,
    accelerator: Accelerator,
    folder: &Path,
    script: &str,
) -> std::result::Result<Outcome, Failure> {
    let root = folder.join("root");
    let _ = fs::remove_dir_all(&root);
    let tree = Tree::new(&root, INIT)?;
    if let Work::Experiments(_) = request.work {
        for program in PROGRAMS {
            tree.program(program)?;
        }
        for program in PEERS.into_iter().filter(|name| find(name).is_some()) {
            tree.program(program)?;
        }
    }
    // Without what only a debugger reads, it is a tenth as long.
    let lab = folder.join("coffer-lab");
    run_program(
        command("strip")
            .arg("-g")
            .arg("-o")
            .args([&lab, &request.lab]),
    )?;
    tree.executable(&lab, "coffer-lab")?;
    let (mut wanted, mut module) = (String::new(), kernel.module.clone());
    if let Some(unpacked) = &kernel.packages {
        modules::stage(unpacked, &root)?;
        wanted = modules::WANTED.join("\n");
        module = Some(own_module::build(
            &unpacked.headers,
            &folder.join("module"),
        )?);
    }
    if let Some(module) = module {
        tree.copy(&module, "lib/own/aestest.ko")?;
    }
    tree.write("etc/wanted", &wanted, 0o644)?;
    tree.write("etc/work", script, 0o644)?;
    let name = format!(
        "PRETTY_NAME=\"coffer-lab's virtual machine, {}\"\n",
        accelerator.name()
    );
    tree.write("etc/os-release", &name, 0o644)?;
    let files = folder.join("files");
    tree.archive(&files)?;
    boot(&Boot {
        accelerator,
        image: &kernel.image,
        files: &files,
        folder,
        title: "In the virtual machine",
    })
}

/// Programs that this system lacks, unpacked below the cache.
fn obtain_tools(cache: &Path) -> Result<()> {
    let tools = cache.join("tools");
    if !tools.is_dir() {
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
