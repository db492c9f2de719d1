//! Programs that the lab's virtual machine has, and what helps where one is missing.

use std::env;

/// Programs that come along into the virtual machine where they are found outside of it
/// (scripts/install-lab-peers unpacks them).
pub const PEERS: [&str; 12] = [
    "age",
    "age-keygen",
    "fusermount",
    "gocryptfs",
    "nbdcopy",
    "nbdkit",
    "openssl",
    "qemu-img",
    "ss",
    "tgtadm",
    "tgtd",
    "wireguard-go",
];

/// The lab that runs in the virtual machine has this variable set.
pub const INSIDE: &str = "COFFER_LAB_INSIDE";

/// What makes a contender run whose program is missing: `here`, unless this is the virtual machine,
/// and the program is none that comes along.
pub fn remedy(program: &str, here: &str) -> String {
    told(env::var_os(INSIDE).is_some(), program, here)
}

fn told(is_inside: bool, program: &str, here: &str) -> String {
    if is_inside && !PEERS.contains(&program) {
        format!("a run outside of this virtual machine, into which {program} does not come along")
    } else {
        here.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_come_along_is_not_to_be_unpacked() {
        let here = "make lab, which unpacks it";
        for program in ["encfs", "ssh", "coffer"] {
            assert!(told(true, program, here).contains("outside of this virtual machine"));
            assert_eq!(told(false, program, here), here);
        }
        assert_eq!(told(true, "gocryptfs", here), here);
    }
}
