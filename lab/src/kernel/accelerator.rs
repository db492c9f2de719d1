//! Who simulates the processor of the virtual machine, and what its clock then counts.

use std::fs::{self, OpenOptions};

use clap::ValueEnum;

use crate::record::Unit;

/// Where Linux offers its virtual machines.
const DEVICE: &str = "/dev/kvm";

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
        let opens = OpenOptions::new().read(true).write(true).open(DEVICE);
        let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        match opens {
            Ok(_) if virtualises(&processor) => Self::Kvm,
            _ => Self::Tcg,
        }
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
            Self::Kvm => crate::machine::core_count(),
            Self::Tcg => 1,
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
                "max",
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
