//! Who simulates the processor of the virtual machine, and what its clock then counts.

use std::fs::{self, OpenOptions};

use clap::ValueEnum;

use crate::contender::{Availability, Contender, Placement};
use crate::host::machine::{available_memory_bytes, core_count};
use crate::host::processor::{QEMU, RUNS_IN_ITS_MACHINE};
use crate::host::programs::find;
use crate::record::Unit;

/// Where Linux offers its virtual machines.
const DEVICE: &str = "/dev/kvm";

/// Memory of the machine: its files and all that experiments write lie in it.
pub(super) const MEMORY_MEGABYTES: u64 = 3072;

/// What QEMU takes for itself: mostly the instructions that it has translated.
const QEMU_MEGABYTES: u64 = 1024;

/// Who simulates the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Accelerator {
    /// The processor itself: figures are MB/s
    Kvm,
    /// A program, one instruction a nanosecond: figures are bytes per 1,000 instructions
    Tcg,
}

impl Accelerator {
    /// What looks usable here. Only a boot tells whether it is.
    pub fn found() -> Self {
        if kvm().runs() { Self::Kvm } else { Self::Tcg }
    }

    /// What the clock of the virtual machine counts.
    pub fn unit(self) -> Unit {
        match self {
            Self::Kvm => Unit::MegabytesPerSecond,
            Self::Tcg => Unit::BytesPerThousandInstructions,
        }
    }

    /// Cores of the machine. One, where instructions are counted: the clock is that of one core.
    pub(super) fn core_count(self) -> usize {
        match self {
            Self::Kvm => core_count(),
            Self::Tcg => 1,
        }
    }

    /// How many machines may run side by side. Where time is measured, one: they would take it from
    /// each other. Else a core and memory for each, and QEMU's own memory on top.
    pub(super) fn machines_at_once(self) -> usize {
        let each = (MEMORY_MEGABYTES + QEMU_MEGABYTES) << 20;
        let room = usize::try_from(available_memory_bytes() / each).unwrap_or(usize::MAX);
        match self {
            Self::Kvm => 1,
            Self::Tcg => core_count().min(room).max(1),
        }
    }

    /// Options of QEMU. Where instructions are counted nothing may differ between two runs: not the
    /// date, not a random number that the processor gives.
    pub(super) fn options(self) -> &'static [&'static str] {
        match self {
            Self::Kvm => &["-accel", "kvm", "-cpu", "host"],
            Self::Tcg => &[
                "-accel",
                "tcg,thread=single",
                "-cpu",
                // It counts `rep movsb` once a byte, where a processor copies many at once: a
                // program and a kernel that copy so would seem to do a great deal.
                "max,-erms,-fsrm",
                "-icount",
                "shift=0,sleep=off",
                "-rtc",
                "base=2026-01-01,clock=vm",
                "-seed",
                "1",
            ],
        }
    }

    /// For people.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kvm => "QEMU with KVM",
            Self::Tcg => "QEMU counting instructions (TCG, -icount shift=0,sleep=off)",
        }
    }
}

/// Who simulates a processor for `coffer-lab kernel`, and what that needs.
pub fn contenders() -> Vec<Contender> {
    let machine = |accelerator: Accelerator, availability| {
        Contender::new(
            accelerator.name(),
            Placement::Kernel,
            accelerator.unit().name(),
        )
        .available(availability)
    };
    let packages = match find("apt-get").or_else(|| find(QEMU)) {
        Some(_) if RUNS_IN_ITS_MACHINE => Availability::Runs,
        Some(_) => Availability::cannot(
            "its virtual machine is one of x86-64, where this program does not run",
            "a lab that was built on x86-64",
        ),
        None => Availability::cannot(
            "neither apt-get nor QEMU is there",
            "Debian or one of its relatives: QEMU and kernels come as its packages",
        ),
    };
    let with_kvm = if packages.runs() {
        kvm()
    } else {
        packages.clone()
    };
    vec![
        machine(Accelerator::Kvm, with_kvm),
        machine(Accelerator::Tcg, packages),
    ]
}

fn kvm() -> Availability {
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    if !virtualises(&processor) {
        return Availability::cannot(
            "this processor offers neither vmx nor svm",
            "a machine that is not virtual itself, or nested virtualisation",
        );
    }
    match OpenOptions::new().read(true).write(true).open(DEVICE) {
        Ok(_) => Availability::Runs,
        Err(error) => Availability::cannot(
            format!("{DEVICE} does not open: {error}"),
            "the kernel's module kvm, and the right to use it (group kvm)",
        ),
    }
}

/// Some virtual machines have the device, but run no unchanged kernel: their processor does not
/// offer what KVM is made of.
fn virtualises(cpuinfo: &str) -> bool {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    let mut flags = flags.unwrap_or_default().split_ascii_whitespace();
    flags.any(|flag| flag == "vmx" || flag == "svm")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_alone_is_no_virtual_machine() {
        assert!(virtualises("model name: x\nflags\t: fpu vmx aes\n"));
        assert!(!virtualises("flags\t: fpu aes vmxx\n"));
        assert!(!virtualises(""));
    }
}
