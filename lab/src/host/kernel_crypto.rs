//! What this machine's kernel offers: `/proc/crypto` and the configuration it was built with.

use std::fs;
use std::io::Read;

use flate2::read::GzDecoder;
use serde::{Deserialize, Serialize};

/// The most of a configuration that is read: they have some 300 KB.
const CONFIG_BYTES_MAX: u64 = 8 << 20;

/// An implementation that `/proc/crypto` lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Driver {
    /// The algorithm: `cbc(aes)`.
    pub algorithm: String,
    /// The implementation: `cbc-aes-aesni`.
    pub driver: String,
    /// The highest is taken when a program asks by algorithm.
    pub priority: i32,
    /// `skcipher`, `aead`, …
    pub kind: String,
    /// Only for the kernel's own use.
    pub internal: bool,
}

/// Reads `/proc/crypto`; nothing where there is none. A template such as `xts(aes)` is listed only
/// after a program has asked for it.
pub fn drivers() -> Vec<Driver> {
    parse_drivers(&fs::read_to_string("/proc/crypto").unwrap_or_default())
}

fn parse_drivers(text: &str) -> Vec<Driver> {
    text.split("\n\n").filter_map(parse_driver).collect()
}

fn parse_driver(block: &str) -> Option<Driver> {
    let field = |name: &str| {
        let mut lines = block.lines().filter_map(|line| line.split_once(':'));
        let found = lines.find(|(key, _)| key.trim() == name)?;
        Some(found.1.trim().to_owned())
    };
    Some(Driver {
        algorithm: field("name")?,
        driver: field("driver")?,
        priority: field("priority")?.parse().ok()?,
        kind: field("type")?,
        internal: field("internal").as_deref() == Some("yes"),
    })
}

/// The driver that is taken when a program, or the kernel, asks by algorithm.
pub fn first_choice<'a>(drivers: &'a [Driver], algorithm: &str) -> Option<&'a Driver> {
    let own = drivers.iter().filter(|one| one.algorithm == algorithm);
    own.filter(|one| !one.internal)
        .max_by_key(|one| one.priority)
}

/// The kernel's first choice for a block of AES, where the processor has instructions for it and no
/// listed driver uses them: all are in C. None, where one does, or there is nothing to use.
pub fn aes_in_c<'a>(drivers: &'a [Driver], instructions: &[String]) -> Option<&'a Driver> {
    const IN_C: [&str; 3] = ["aes-generic", "aes-fixed-time", "aes-lib"];
    let in_c = |one: &Driver| IN_C.iter().any(|name| one.driver.contains(name));
    let mut of_aes = drivers.iter().filter(|one| one.algorithm.contains("aes"));
    let has_instructions = instructions.iter().any(|one| one == "aes");
    let all = has_instructions && of_aes.all(in_c);
    first_choice(drivers, "aes").filter(|_| all)
}

/// The configuration that the running kernel was built with.
#[derive(Debug, Clone, Default)]
pub struct Config(Option<String>);

impl Config {
    /// Reads `/proc/config.gz`, or `/boot/config-RELEASE` as Debian has it.
    pub fn read() -> Self {
        Self(from_proc().or_else(from_boot))
    }

    /// What an option is set to (`y`, `m`); `n` when the configuration is known and lacks it, None
    /// when no configuration can be read.
    pub fn option(&self, name: &str) -> Option<char> {
        let text = self.0.as_ref()?;
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        Some(value.and_then(|value| value.chars().next()).unwrap_or('n'))
    }

    /// Says that the kernel lacks an option, in words that fit what is known.
    pub fn lacks(&self, option: &str) -> String {
        match self.option(option) {
            Some('n') => format!("this kernel was built without {option}"),
            Some('m') => format!("{option} is a module that is not loaded"),
            Some(_) => format!("this kernel has {option}, but refuses"),
            None => format!("this kernel refuses; it may have been built without {option}"),
        }
    }
}

fn from_proc() -> Option<String> {
    let file = fs::File::open("/proc/config.gz").ok()?;
    let mut text = String::new();
    let mut reader = GzDecoder::new(file).take(CONFIG_BYTES_MAX);
    reader.read_to_string(&mut text).ok()?;
    Some(text)
}

fn from_boot() -> Option<String> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    fs::read_to_string(format!("/boot/config-{}", release.trim())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_read_by_their_fields() {
        let text = "name         : ctr(aes)\ndriver       : ctr-aes-aesni\nmodule       : aesni\n\
                    priority     : 400\nrefcnt       : 1\ninternal     : no\ntype         : \
                    skcipher\n\nname         : broken\n\n";
        let drivers = parse_drivers(text);
        assert_eq!(drivers.len(), 1);
        assert_eq!(drivers[0].driver, "ctr-aes-aesni");
        assert_eq!((drivers[0].priority, drivers[0].internal), (400, false));
    }

    #[test]
    fn a_kernel_whose_aes_is_all_in_c_is_known() {
        let driver = |algorithm: &str, driver: &str, priority| Driver {
            algorithm: algorithm.into(),
            driver: driver.into(),
            priority,
            kind: "cipher".into(),
            internal: false,
        };
        let mut drivers = vec![
            driver("xts(aes)", "xts(ecb(aes-fixed-time))", 101),
            driver("aes", "aes-generic", 100),
            driver("aes", "aes-fixed-time", 101),
        ];
        let has = ["aes".to_owned()];
        assert_eq!(aes_in_c(&drivers, &has).unwrap().driver, "aes-fixed-time");
        assert_eq!(aes_in_c(&drivers, &[]), None, "nothing that it could use");
        drivers.push(driver("xts(aes)", "xts-aes-aesni", 401));
        assert_eq!(aes_in_c(&drivers, &has), None);
        let first = first_choice(&drivers, "xts(aes)").unwrap();
        assert_eq!(first.driver, "xts-aes-aesni");
        assert_eq!(aes_in_c(&[], &has), None);
    }

    #[test]
    fn options_are_set_absent_or_unknown() {
        let config = Config(Some(
            "CONFIG_TLS=m\n# CONFIG_NET is not set\nCONFIG_TLS_X=y\n".into(),
        ));
        assert_eq!(config.option("CONFIG_TLS"), Some('m'));
        assert_eq!(config.option("CONFIG_NET"), Some('n'));
        assert_eq!(Config(None).option("CONFIG_TLS"), None);
        assert_eq!(
            config.lacks("CONFIG_NET"),
            "this kernel was built without CONFIG_NET"
        );
    }
}
