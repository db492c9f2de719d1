//! The kernel's modules that the experiments need, with those that they need in turn.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use crate::error::{Doing, Result};
use crate::host::programs::{command, run};
use crate::kernel::release::Unpacked;

/// Loaded in this order when the machine starts. Templates stand here too: with them loaded,
/// `/proc/crypto` tells of all drivers. What a kernel lacks, or has built in, is passed over.
pub(super) const WANTED: [&str; 42] = [
    "aes_generic",
    "cryptd",
    "crypto_simd",
    "aesni_intel",
    "ghash_generic",
    "ghash_clmulni_intel",
    "crypto_null",
    "ecb",
    "cbc",
    "ctr",
    "gcm",
    "chacha20poly1305",
    "chacha_x86_64",
    "poly1305_x86_64",
    "xts",
    "essiv",
    "drbg",
    "seqiv",
    "echainiv",
    "hmac",
    "sha256_generic",
    "sha512_generic",
    "cts",
    "algif_skcipher",
    "algif_aead",
    "tls",
    "loop",
    "crc32c_generic",
    "crc32c_intel",
    "libcrc32c",
    "ext4",
    "dm_mod",
    "dm_crypt",
    "veth",
    "tun",
    "xfrm_user",
    "esp4",
    "esp4_offload",
    "af_packet",
    "udp_tunnel",
    "wireguard",
    "fuse",
];

/// Puts them below `root`, as a system has them, and lists what they need.
pub(super) fn stage(unpacked: &Unpacked, root: &Path) -> Result<()> {
    let below = Path::new("lib/modules").join(&unpacked.release);
    let (from, to) = (unpacked.root.join(&below), root.join(&below));
    let listed = from.join("modules.dep");
    let text = fs::read_to_string(&listed).doing(|| format!("reading {}", listed.display()))?;
    let mut unpack = command("xz");
    unpack.args(["--decompress", "--force", "--"]);
    let mut is_any_packed = false;
    for file in closure(&text, &WANTED) {
        let target = to.join(file);
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder).doing(|| format!("making {}", folder.display()))?;
        }
        fs::copy(from.join(file), &target).doing(|| format!("copying {file}"))?;
        if file.ends_with(".xz") {
            unpack.arg(&target);
            is_any_packed = true;
        }
    }
    if is_any_packed {
        // Here, where it takes no time, and not on a processor that is simulated.
        run(&mut unpack)?;
    }
    for list in [
        "modules.builtin",
        "modules.builtin.modinfo",
        "modules.order",
    ] {
        fs::copy(from.join(list), to.join(list)).doing(|| format!("copying {list}"))?;
    }
    run(command("depmod")
        .arg("-b")
        .args([root.as_os_str(), unpacked.release.as_ref()]))
    .map(drop)
}

/// The files of modules and of all that they need, from `modules.dep` (modules.dep(5)): a line
/// tells a file and, behind a colon, all files that it needs.
fn closure<'a>(list: &'a str, wanted: &[&str]) -> Vec<&'a str> {
    let lines = list.lines().filter_map(|line| line.split_once(':'));
    let by_name: HashMap<String, (&str, &str)> = lines
        .map(|(file, needs)| (name(file), (file, needs)))
        .collect();
    let mut files = Vec::new();
    for (file, needs) in wanted.iter().filter_map(|name| by_name.get(*name)) {
        files.push(*file);
        files.extend(needs.split_ascii_whitespace());
    }
    files.sort_unstable();
    files.dedup();
    files
}

/// `kernel/crypto/af-alg.ko.xz` is af_alg.
fn name(file: &str) -> String {
    let file = file.rsplit('/').next().unwrap_or(file);
    file.split('.').next().unwrap_or(file).replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_comes_with_all_it_needs() {
        let list = "kernel/a/gcm.ko: kernel/b/g-hash.ko.xz\nkernel/b/g-hash.ko.xz:\n\
                    kernel/c/other.ko:\n";
        assert_eq!(
            closure(list, &["gcm", "missing"]),
            ["kernel/a/gcm.ko", "kernel/b/g-hash.ko.xz"]
        );
        assert_eq!(closure(list, &["g_hash"]), ["kernel/b/g-hash.ko.xz"]);
    }
}
