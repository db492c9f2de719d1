//! The processor's last cache before memory.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

const PROCESSORS: &str = "/sys/devices/system/cpu";

/// Bytes of all last-level caches of this machine together: each is counted once, however many
/// cores share it. None where the kernel does not tell.
pub(crate) fn last_level_bytes() -> Option<u64> {
    last_level_bytes_of(Path::new(PROCESSORS))
}

fn last_level_bytes_of(processors: &Path) -> Option<u64> {
    let mut caches = HashSet::new();
    for cpu in fs::read_dir(processors).ok()?.flatten() {
        let Ok(all) = fs::read_dir(cpu.path().join("cache")) else {
            continue;
        };
        let all = all.flatten().filter_map(|one| cache(&one.path()));
        caches.extend(all.max_by_key(|(level, ..)| *level));
    }
    let level = caches.iter().map(|(level, ..)| *level).max()?;
    let last = caches.iter().filter(|(of, ..)| *of == level);
    Some(last.map(|(.., bytes)| bytes).sum())
}

/// Its level, who shares it, and its bytes.
fn cache(folder: &Path) -> Option<(u32, String, u64)> {
    let told = |name: &str| fs::read_to_string(folder.join(name)).ok();
    if told("type")?.trim() == "Instruction" {
        return None;
    }
    let level = told("level")?.trim().parse().ok()?;
    Some((
        level,
        told("shared_cpu_list")?,
        bytes(told("size")?.trim())?,
    ))
}

/// `32768K`, as the kernel tells sizes.
fn bytes(size: &str) -> Option<u64> {
    let (number, shift) = match size.strip_suffix('K') {
        Some(number) => (number, 10),
        None => size.strip_suffix('M').map_or((size, 0), |one| (one, 20)),
    };
    Some(number.parse::<u64>().ok()? << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_of_the_last_level_are_counted_once_each() {
        let folder = std::env::temp_dir().join(format!("lab-caches-{}", std::process::id()));
        let plant = |cpu: u32, index: u32, kind: &str, level: u32, shared: &str, size: &str| {
            let place = folder.join(format!("cpu{cpu}/cache/index{index}"));
            fs::create_dir_all(&place).unwrap();
            let level = level.to_string();
            for (name, told) in [
                ("type", kind),
                ("level", &level),
                ("shared_cpu_list", shared),
                ("size", size),
            ] {
                fs::write(place.join(name), format!("{told}\n")).unwrap();
            }
        };
        assert_eq!(last_level_bytes_of(&folder), None);
        for (cpu, shared) in [(0, "0-1"), (1, "0-1"), (2, "2")] {
            plant(cpu, 0, "Data", 1, &cpu.to_string(), "32K");
            plant(cpu, 1, "Instruction", 1, &cpu.to_string(), "64K");
            plant(cpu, 2, "Unified", 3, shared, "32768K");
        }
        fs::create_dir_all(folder.join("cpufreq")).unwrap();
        let found = last_level_bytes_of(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, Some(64 << 20));
        assert_eq!(
            (bytes("4M"), bytes("512"), bytes("x")),
            (Some(4 << 20), Some(512), None)
        );
    }
}
