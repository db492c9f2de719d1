//! The files of a run: what its virtual machines find when they start.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Doing, Result};
use crate::host::folder::make;
use crate::host::peers::PEERS;
use crate::host::programs::{command, find, find_library, run as run_program};
use crate::host::undo::{Undo, say};
use crate::kernel::accelerator::Accelerator;
use crate::kernel::machine::FILES;
use crate::kernel::release::Kernel;
use crate::kernel::request::{Request, Work};
use crate::kernel::tree::Tree;
use crate::kernel::{modules, own_module};
use crate::measuring::progress::Progress;
use crate::net::block::{ISCSI_DRIVER, MEMORY_PLUGIN};

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

/// What some of the [programs that come along](PEERS) load.
const LOADED: [&str; 2] = [MEMORY_PLUGIN, ISCSI_DRIVER];

/// Runs of this process, each with a folder of its own.
static RUNS: AtomicU32 = AtomicU32::new(0);

const INIT: &str = include_str!("init.sh");

/// The folder of a run; it goes with it, unless it shall be kept.
pub(super) struct Stage {
    folder: PathBuf,
    tree: Tree,
    _remove: Option<Undo>,
}

impl Stage {
    /// Puts together what all machines of the run have in common.
    pub(super) fn new(
        request: &Request,
        cache: &Path,
        kernel: &Kernel,
        accelerator: Accelerator,
    ) -> Result<Self> {
        let number = RUNS.fetch_add(1, Ordering::Relaxed);
        // What is to be kept has another name: `coffer-lab clean` leaves it.
        let kind = if request.keep { "kept" } else { "run" };
        let folder = cache.join(format!("{kind}-{}-{number}", std::process::id()));
        let remove = if request.keep {
            say(&format!("coffer-lab: keeping {}", folder.display()));
            fs::create_dir_all(&folder).doing(|| format!("making {}", folder.display()))?;
            None
        } else {
            Some(make(&folder, 0)?)
        };
        let _progress = Progress::open("Putting the machine's files together");
        let tree = Tree::new(&folder.join("root"), INIT)?;
        if let Work::Experiments(_) = request.work {
            for program in PROGRAMS {
                tree.program(program)?;
            }
            for program in PEERS.into_iter().filter(|name| find(name).is_some()) {
                tree.program(program)?;
            }
            for name in LOADED {
                if let Some(path) = find_library(name) {
                    tree.library(&path, name)?;
                }
            }
        }
        let stage = Self {
            folder,
            tree,
            _remove: remove,
        };
        stage.add_stripped(&request.lab, "coffer-lab")?;
        for program in &request.programs {
            let name = program.file_name().unwrap_or_default().to_string_lossy();
            stage.add_stripped(program, &name)?;
        }
        stage.add_modules(kernel)?;
        let name = format!(
            "PRETTY_NAME=\"coffer-lab's virtual machine, {}\"\n",
            accelerator.name()
        );
        stage.tree.write("etc/os-release", &name, 0o644)?;
        Ok(stage)
    }

    fn add_stripped(&self, program: &Path, name: &str) -> Result<()> {
        // Without what only a debugger reads, it is a tenth as long.
        let stripped = self.folder.join(name);
        let mut strip = command("strip");
        strip.args(["-g", "-o"]).arg(&stripped).arg(program);
        run_program(&mut strip)?;
        self.tree.executable(&stripped, name)
    }

    fn add_modules(&self, kernel: &Kernel) -> Result<()> {
        let (mut wanted, mut module) = (String::new(), kernel.module.clone());
        if let Some(unpacked) = &kernel.packages {
            modules::stage(unpacked, &self.folder.join("root"))?;
            wanted = modules::WANTED.join("\n");
            let folder = self.folder.join("module");
            module = Some(own_module::build(&unpacked.headers, &folder)?);
        }
        if let Some(module) = module {
            self.tree.copy(&module, "lib/own/aestest.ko")?;
        }
        self.tree.write("etc/wanted", &wanted, 0o644)
    }

    /// Makes the folder of one machine, with its files, in which it will do `script`.
    pub(super) fn machine(&self, number: usize, script: &str) -> Result<PathBuf> {
        let folder = self.folder.join(number.to_string());
        fs::create_dir(&folder).doing(|| format!("making {}", folder.display()))?;
        self.tree.write("etc/work", script, 0o644)?;
        self.tree.archive(&folder.join(FILES))?;
        Ok(folder)
    }
}
