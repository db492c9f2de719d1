//! Who takes part in the raw experiments, asked of this machine.

use nix::errno::Errno;

use crate::cipher::af_alg::{self, KeyFrom, Missing};
use crate::cipher::algorithm::Algorithm;
use crate::cipher::{
    Cipher, CipherContender, Expand, aegis_crate, aws_lc, cobblestone, copied, open_ssl, plain_c,
    rust_crypto,
};
use crate::contender::{Availability, Contender, Placement};
use crate::error::{LabError, Result};
use crate::host::kernel_crypto::{Config, drivers};

/// What would make a contender of the kernel run.
pub(super) const IN_A_VIRTUAL_MACHINE: &str =
    "a kernel that has it, as Debian's; try coffer-lab kernel";

/// All contenders of an algorithm, those that can't run among them.
pub fn roster(algorithm: Algorithm) -> Vec<CipherContender> {
    let user = |contender: Contender, expand: Expand| CipherContender {
        contender,
        expand,
        own_format: false,
    };
    let mut all = vec![
        user(
            aws_lc::contender(algorithm),
            Box::new(move |key| aws_lc::expand(algorithm, key)),
        ),
        user(
            open_ssl::contender(),
            Box::new(move |key| open_ssl::expand(algorithm, key)),
        ),
        user(
            rust_crypto::contender(algorithm),
            Box::new(move |key| rust_crypto::expand(algorithm, key)),
        ),
        user(
            plain_c::contender(),
            Box::new(move |key| plain_c::expand(algorithm, key)),
        ),
    ];
    if algorithm == Algorithm::Gcm256 {
        all.push(CipherContender {
            contender: cobblestone::contender(),
            expand: Box::new(cobblestone::expand),
            own_format: true,
        });
        // Where there is such a card, its drivers are among those of the kernel.
        if !drivers().iter().any(|one| one.driver.contains("qat")) {
            let none = |_: &[u8]| -> Result<Box<dyn Cipher>> {
                Err(LabError::Cipher {
                    contender: "QAT".into(),
                    what: "there is none".into(),
                })
            };
            all.push(user(quick_assist(), Box::new(none)));
        }
    }
    all.extend(kernel_names(algorithm).into_iter().map(|(name, from)| {
        let contender = af_alg_contender(algorithm, &name, from);
        user(
            contender,
            Box::new(move |key| af_alg::expand(algorithm, &name, from, key)),
        )
    }));
    all
}

/// Other authenticated ciphers than AES-GCM, each with its algorithm in its name; all together,
/// since they are compared with each other.
pub fn aeads() -> Vec<(Algorithm, CipherContender)> {
    let named = |algorithm: Algorithm, mut contender: Contender, expand: Expand| {
        if !contender.name.starts_with(algorithm.name()) {
            contender.name = format!("{}, {}", algorithm.name(), contender.name);
        }
        let own_format = false;
        let one = CipherContender {
            contender,
            expand,
            own_format,
        };
        (algorithm, one)
    };
    let aws_lc = |one: Algorithm| {
        let expand: Expand = Box::new(move |key| aws_lc::expand(one, key));
        named(one, aws_lc::contender(one), expand)
    };
    let rust_crypto = |one: Algorithm| {
        let expand: Expand = Box::new(move |key| rust_crypto::expand(one, key));
        named(one, rust_crypto::contender(one), expand)
    };
    let (chacha, siv) = (Algorithm::ChaCha20Poly1305, Algorithm::GcmSiv256);
    let (aegis, xaes) = (Algorithm::Aegis256, Algorithm::Xaes256);
    let kernel = af_alg_contender(chacha, chacha.kernel_name(), KeyFrom::Program);
    let in_kernel: Expand =
        Box::new(move |key| af_alg::expand(chacha, chacha.kernel_name(), KeyFrom::Program, key));
    vec![
        aws_lc(chacha),
        named(
            chacha,
            open_ssl::contender(),
            Box::new(move |key| open_ssl::expand(chacha, key)),
        ),
        named(chacha, kernel, in_kernel),
        aws_lc(siv),
        rust_crypto(siv),
        named(
            aegis,
            aegis_crate::contender(),
            Box::new(aegis_crate::expand),
        ),
        rust_crypto(xaes),
    ]
}

/// Intel's accelerator, where it is missing.
fn quick_assist() -> Contender {
    let missing = Availability::cannot(
        "/proc/crypto lists no driver of QAT: there is no such card, or its module is not loaded",
        "a processor or card with QuickAssist, its qat_* module, and a kernel that leads AF_ALG to \
         drivers of hardware, as newer ones do no more; then they are measured as all others",
    );
    Contender::new("QAT", Placement::Kernel, "Intel QuickAssist").available(missing)
}

/// What bounds all of them.
pub fn ceiling() -> CipherContender {
    CipherContender {
        contender: copied::contender(),
        expand: Box::new(|_| Ok(copied::begin())),
        own_format: true,
    }
}

/// What AF_ALG is asked for: the algorithm, with either source of its key; then each driver.
fn kernel_names(algorithm: Algorithm) -> Vec<(String, KeyFrom)> {
    let name = algorithm.kernel_name();
    // Asking makes the kernel put a template together; only then is it listed. Over the plain block
    // ciphers it does so only when they are named.
    for block_cipher in ["aes", "aes-generic", "aes-aesni"] {
        let asked = name.replace("(aes)", &format!("({block_cipher})"));
        let _ = af_alg::probe(algorithm, &asked, KeyFrom::Program);
    }
    let mut names = vec![
        (name.to_owned(), KeyFrom::Program),
        (name.to_owned(), KeyFrom::Keyring),
    ];
    let listed = drivers().into_iter();
    let fits = listed.filter(|driver| driver.algorithm == name && !driver.internal);
    names.extend(fits.map(|driver| (driver.driver, KeyFrom::Program)));
    names
}

fn af_alg_contender(algorithm: Algorithm, name: &str, from: KeyFrom) -> Contender {
    let by_algorithm = name == algorithm.kernel_name();
    let label = match (by_algorithm, from) {
        (true, KeyFrom::Program) => format!("AF_ALG {name}"),
        (true, KeyFrom::Keyring) => format!("AF_ALG {name}, key by serial"),
        (false, _) => format!("AF_ALG driver {name}"),
    };
    let listed = drivers();
    let taken = listed
        .iter()
        .filter(|driver| driver.algorithm == name || driver.driver == name)
        .max_by_key(|driver| driver.priority);
    let runs_on = match taken {
        Some(driver) => format!(
            "kernel driver {}, priority {}",
            driver.driver, driver.priority
        ),
        None => "the kernel's crypto API".to_owned(),
    };
    Contender::new(label, Placement::Kernel, runs_on)
        .set("sendmsg without blocking, then recvmsg, into the same buffer; sockets of 4 MiB")
        .set(match from {
            KeyFrom::Program => "key from the program (ALG_SET_KEY)",
            KeyFrom::Keyring => "key from the keyring (ALG_SET_KEY_BY_KEY_SERIAL)",
        })
        .available(availability(algorithm, name, from))
}

/// Whether AF_ALG has this algorithm for programs here.
pub fn kernel_availability(algorithm: Algorithm) -> Availability {
    availability(algorithm, algorithm.kernel_name(), KeyFrom::Program)
}

fn availability(algorithm: Algorithm, name: &str, from: KeyFrom) -> Availability {
    let missing = match af_alg::probe(algorithm, name, from) {
        Ok(()) => return enough_room().unwrap_or(Availability::Runs),
        Err(missing) => missing,
    };
    let option = if algorithm.authenticates() {
        "CONFIG_CRYPTO_USER_API_AEAD"
    } else {
        "CONFIG_CRYPTO_USER_API_SKCIPHER"
    };
    cannot(&missing, option, name, algorithm.key_bytes())
}

/// In words: what is missing for `name`, whose socket needs `option`.
pub(super) fn cannot(
    missing: &Missing,
    option: &str,
    name: &str,
    key_bytes: usize,
) -> Availability {
    match missing {
        Missing::Family => Availability::cannot(
            format!("AF_ALG: {}", Config::read().lacks(option)),
            IN_A_VIRTUAL_MACHINE,
        ),
        Missing::Algorithm(Errno::EACCES | Errno::EPERM) => Availability::cannot(
            "AF_ALG: refused to this user",
            "run as root, or set /proc/sys/crypto/af_alg_restrict to 0",
        ),
        Missing::Algorithm(_) => Availability::cannot(
            format!("AF_ALG: this kernel has no {name}, or does not give it to programs"),
            format!("modprobe the module of {name}; or {IN_A_VIRTUAL_MACHINE}"),
        ),
        Missing::KeySerial(Errno::ENOPROTOOPT) => Availability::cannot(
            "AF_ALG: keys by serial came with Linux 6.2",
            "a newer kernel; try coffer-lab kernel --kernel backports",
        ),
        Missing::KeySerial(error) => Availability::cannot(
            format!("AF_ALG: the kernel took no key from its keyring ({error})"),
            "a kernel with CONFIG_KEYS, and a process that may add keys",
        ),
        Missing::Key(error) => Availability::cannot(
            format!("AF_ALG: {name} takes no key of {key_bytes} bytes ({error})"),
            IN_A_VIRTUAL_MACHINE,
        ),
    }
}

/// What a socket may use for its lists of pages, in bytes: those of a message of 1 MiB take 20 KB,
/// which is all that Linux gave by default before 6.7.
const OPTION_MEMORY_BYTES: u64 = 131_072;

fn enough_room() -> Option<Availability> {
    let text = std::fs::read_to_string("/proc/sys/net/core/optmem_max").ok()?;
    let bytes: u64 = text.trim().parse().ok()?;
    (bytes < OPTION_MEMORY_BYTES).then(|| {
        Availability::cannot(
            format!("AF_ALG: no messages of 1 MiB, as net.core.optmem_max is {bytes}"),
            format!("sysctl -w net.core.optmem_max={OPTION_MEMORY_BYTES}, as root"),
        )
    })
}
