//! The machine, and how busy it is.

use std::path::Path;

use coffer_measure::machine::{self, field, read};
use serde::{Deserialize, Serialize};

use crate::host::kernel_crypto::{Driver, drivers};
use crate::host::processor::INSTRUCTIONS;

/// What does not change while the lab runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor.
    pub processor: String,
    /// How many cores programs may use.
    pub core_count: usize,
    /// Its instructions that matter here.
    pub instructions: Vec<String>,
    /// All memory, in bytes.
    pub memory_bytes: u64,
    /// The kernel's release.
    pub kernel: String,
    /// How the kernel was built: compiler and date.
    pub kernel_build: String,
    /// The distribution.
    pub system: String,
    /// Whether it is a virtual machine, as far as it tells.
    pub virtual_machine: bool,
    /// The kernel's implementations of AES.
    pub drivers: Vec<Driver>,
}

impl Machine {
    /// Looks.
    pub fn look() -> Self {
        let processor = read("/proc/cpuinfo");
        let flags = field(&processor, "flags").or_else(|| field(&processor, "Features"));
        let flags: Vec<&str> = flags.unwrap_or_default().split(' ').collect();
        let has = |name: &&&str| flags.contains(*name);
        let aes = |driver: &Driver| driver.algorithm.contains("aes");
        Self {
            processor: machine::processor(),
            core_count: core_count(),
            instructions: INSTRUCTIONS
                .iter()
                .filter(has)
                .map(|s| (*s).to_owned())
                .collect(),
            memory_bytes: kibibytes(&read("/proc/meminfo"), "MemTotal").unwrap_or(0) * 1024,
            kernel: machine::kernel(),
            kernel_build: without_builder(read("/proc/version").trim()),
            system: machine::system(),
            virtual_machine: flags.contains(&"hypervisor")
                || is_a_guests_firmware(
                    &read("/sys/class/dmi/id/sys_vendor"),
                    &read("/sys/class/dmi/id/product_name"),
                ),
            drivers: drivers().into_iter().filter(aes).collect(),
        }
    }

    /// How many cores it has, in words.
    pub fn cores(&self) -> String {
        match self.core_count {
            1 => "1 core".to_owned(),
            count => format!("{count} cores"),
        }
    }

    /// One line.
    pub fn line(&self) -> String {
        format!(
            "{}, {}{}, Linux {}, {}",
            self.processor,
            self.cores(),
            if self.virtual_machine {
                " (virtual machine)"
            } else {
                ""
            },
            self.kernel,
            self.system
        )
    }
}

/// What changes while the lab runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// Load averages of 1, 5 and 15 minutes.
    pub load: Vec<f64>,
    /// The frequency of each core, in MHz; empty where it is not told.
    pub frequencies_mhz: Vec<f64>,
    /// The governor of the first core's frequency, where there is one.
    pub governor: Option<String>,
}

impl Conditions {
    /// Looks.
    pub fn look() -> Self {
        let load = read("/proc/loadavg");
        let processor = read("/proc/cpuinfo");
        let frequency = |line: &str| {
            line.strip_prefix("cpu MHz")?
                .split(':')
                .nth(1)?
                .trim()
                .parse()
                .ok()
        };
        let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        Self {
            load: load
                .split(' ')
                .take(3)
                .filter_map(|s| s.parse().ok())
                .collect(),
            frequencies_mhz: processor.lines().filter_map(frequency).collect(),
            governor: Some(governor.trim().to_owned()).filter(|name| !name.is_empty()),
        }
    }
}

/// What firmware calls a virtual machine, by its vendor and product: other processors than x86-64
/// have no flag for it.
const GUESTS: [(&str, &str); 6] = [
    ("QEMU", ""),
    ("Amazon EC2", ""),
    ("Google", "Google Compute Engine"),
    ("Microsoft Corporation", "Virtual Machine"),
    ("VMware", ""),
    ("Alibaba Cloud", ""),
];

fn is_a_guests_firmware(vendor: &str, product: &str) -> bool {
    let is_named = |(of, name): &(&str, &str)| vendor.starts_with(of) && product.starts_with(name);
    // Machines of a cloud that are rented whole.
    GUESTS.iter().any(is_named) && !product.contains("metal")
}

/// How a kernel was built, but not who built it and on which machine: records are sent to others.
fn without_builder(version: &str) -> String {
    let builder = |word: &&str| word.starts_with('(') && word.contains('@') && word.ends_with(')');
    let words = version.split(' ').filter(|word| !builder(word));
    words.collect::<Vec<_>>().join(" ")
}

/// How many cores this program may use.
pub fn core_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How much memory programs could still have; a container may be given less than the machine has.
pub fn available_memory_bytes() -> u64 {
    let machine = kibibytes(&read("/proc/meminfo"), "MemAvailable").unwrap_or(0) * 1024;
    let groups = read("/proc/self/cgroup");
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"));
    let own = Path::new(GROUPS).join(own.unwrap_or(""));
    let all = own.ancestors().take_while(|one| one.starts_with(GROUPS));
    all.filter_map(left_in_group).fold(machine, u64::min)
}

/// Where version 2 of control groups is mounted.
const GROUPS: &str = "/sys/fs/cgroup";

/// What the limit of a control group leaves: files that it keeps in memory give way. None without
/// a limit.
fn left_in_group(group: &Path) -> Option<u64> {
    let told = |name: &str| std::fs::read_to_string(group.join(name)).ok();
    let limit: u64 = told("memory.max")?.trim().parse().ok()?;
    let used: u64 = told("memory.current")?.trim().parse().ok()?;
    let all = told("memory.stat").unwrap_or_default();
    let files = ["inactive_file ", "active_file "]
        .into_iter()
        .filter_map(|name| {
            let found = all.lines().find_map(|line| line.strip_prefix(name))?;
            found.trim().parse::<u64>().ok()
        });
    Some(limit.saturating_sub(used.saturating_sub(files.sum())))
}

fn kibibytes(text: &str, name: &str) -> Option<u64> {
    field(text, name)?.strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, read_dir};

    use super::*;
    use crate::report::compare;

    #[test]
    fn who_built_the_kernel_is_not_told() {
        let told = without_builder("Linux version 6.1 (ann@home) (gcc (GCC) 12.2.0) #1 SMP a@b");
        assert_eq!(told, "Linux version 6.1 (gcc (GCC) 12.2.0) #1 SMP a@b");
    }

    #[test]
    fn guests_are_known_without_a_flag() {
        assert!(is_a_guests_firmware("QEMU\n", "KVM Virtual Machine\n"));
        assert!(is_a_guests_firmware("Amazon EC2\n", "m6g.large\n"));
        assert!(!is_a_guests_firmware("Amazon EC2\n", "m6g.metal\n"));
        assert!(!is_a_guests_firmware(
            "Microsoft Corporation\n",
            "Surface Pro\n"
        ));
        assert!(!is_a_guests_firmware("", ""));
    }

    /// The records that are here for others to read.
    #[test]
    fn committed_records_tell_no_builder() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/lab");
        let all = [folder.clone(), folder.join("machines")].map(|one| read_dir(one).unwrap());
        let files = all.into_iter().flatten().map(|entry| entry.unwrap().path());
        let records = files.filter(|file| file.extension().is_some_and(|ending| ending == "json"));
        let machines: Vec<Machine> = records
            .map(|file| compare::read(&file).unwrap().machine)
            .collect();
        assert!(machines.len() >= 5);
        for machine in machines {
            assert_eq!(without_builder(&machine.kernel_build), machine.kernel_build);
        }
    }

    #[test]
    fn a_container_leaves_what_its_limit_says() {
        let group = std::env::temp_dir().join(format!("lab-group-{}", std::process::id()));
        fs::create_dir(&group).unwrap();
        let plant = |name: &str, told: &str| fs::write(group.join(name), told).unwrap();
        assert_eq!(left_in_group(&group), None);
        plant("memory.current", "700\n");
        plant(
            "memory.stat",
            "anon 100\ninactive_file 500\nactive_file 50\n",
        );
        plant("memory.max", "max\n");
        assert_eq!(left_in_group(&group), None);
        plant("memory.max", "1000\n");
        let left = left_in_group(&group);
        plant("memory.max", "100\n");
        let none = left_in_group(&group);
        fs::remove_dir_all(&group).unwrap();
        assert_eq!((left, none), (Some(850), Some(0)));
    }

    #[test]
    fn cores_are_counted_in_words() {
        let mut machine = Machine::look();
        machine.core_count = 1;
        assert!(machine.line().contains(", 1 core") && !machine.line().contains("1 cores"));
        machine.core_count = 2;
        assert_eq!(machine.cores(), "2 cores");
    }

    #[test]
    fn this_machine_is_described() {
        let machine = Machine::look();
        assert!(machine.core_count >= 1 && machine.memory_bytes > 1 << 20);
        assert!(!machine.kernel.is_empty() && machine.system != "unknown system");
        assert_eq!(Conditions::look().load.len(), 3);
    }
}
