//! Sealing and opening, chunk by chunk, against the cipher itself.
//!
//! Both sides work on one 16 KiB buffer in the processor's nearest caches, for what is compared
//! is what the sealing layer adds: the nonce of each chunk, the bounds, the calls. Where the
//! cipher has two forms that compare, in place and out of place, the faster one counts.

use std::hint::black_box;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use coffer_seal::limits::{CHUNK_BYTES, HEADER_BYTES, SEALED_CHUNK_BYTES, TAG_BYTES};
use coffer_seal::{BlobId, BucketId, Context, Opener, Sealer, SecretKey, seal};

use crate::bench::{Bench, Effort};
use crate::error::Result;
use crate::machine::pinning;
use crate::report::figures::{Quantity, Sample, Target, Work};
use crate::works::rounds::{Entrant, interleave};
use coffer_measure::cpu_time::thread_cpu_seconds;
use coffer_measure::statistics::median;

/// Chunks in a burst: a burst takes a few milliseconds, less than what disturbs the machine.
const BURST_CHUNKS: usize = 4_096;

/// Bursts of each side in a round, taken in turns.
const BURSTS: usize = 48;
const QUICK_BURSTS: usize = 16;

const LEAST: f64 = 0.95;

/// Seals and opens.
pub fn seal_and_open(bench: &Bench) -> Result<Vec<Work>> {
    let Effort { rounds, quick, .. } = bench.effort;
    let bursts = if quick { QUICK_BURSTS } else { BURSTS };
    pinning::on_server_core(bench.pinned, || {
        let sealing = compare("seal 16 KiB chunks", rounds, bursts, seal_round)?;
        let opening = compare("open 16 KiB chunks", rounds, bursts, open_round)?;
        Ok(vec![sealing, opening])
    })
}

/// Ours and the cipher's speed in one round, in GB/s.
type Round = fn(usize) -> (f64, f64);

/// Both sides of a round are measured burst by burst in turns; the second entrant only hands over
/// what the first one's round found.
fn compare(title: &str, rounds: usize, bursts: usize, round: Round) -> Result<Work> {
    let sample = |speed| Sample::from([(Quantity::GigabytesPerSecond, speed)]);
    let cipher_speed = std::cell::Cell::new(0.0);
    let cipher_speed = &cipher_speed;
    let entrants = vec![
        Entrant {
            name: "coffer-seal",
            measure: Box::new(move |_| {
                let (ours, cipher) = round(bursts);
                cipher_speed.set(cipher);
                Ok(sample(ours))
            }),
        },
        Entrant {
            name: "aws-lc-rs AES-256-GCM",
            measure: Box::new(move |_| Ok(sample(cipher_speed.get()))),
        },
    ];
    let target = Some(Target::RatioAtLeast(LEAST));
    interleave(
        title,
        Quantity::GigabytesPerSecond,
        target,
        rounds,
        entrants,
    )
}

fn seal_round(bursts: usize) -> (f64, f64) {
    let mut sealer = Sealer::new(&SecretKey::generate(), &context());
    let plaintext = vec![0x5a; CHUNK_BYTES];
    let mut sealed = vec![0; SEALED_CHUNK_BYTES];
    let ours = || {
        sealer
            .seal_chunk(&plaintext, &mut sealed)
            .expect("a whole chunk seals");
        black_box(&mut sealed);
    };
    let mut cipher = Cipher::new();
    let mut in_out = vec![0x5a; CHUNK_BYTES];
    let in_place = || {
        let nonce = cipher.next_nonce();
        let tag = cipher
            .key
            .seal_in_place_separate_tag(nonce, Aad::empty(), &mut in_out);
        let _ = black_box((&mut in_out, tag.expect("it seals")));
    };
    let mut cipher = Cipher::new();
    let mut out = vec![0; SEALED_CHUNK_BYTES];
    let out_of_place = || {
        let nonce = cipher.next_nonce();
        let (text, tag) = out.split_at_mut(CHUNK_BYTES);
        cipher
            .key
            .seal_out_of_place_scatter(nonce, Aad::empty(), &plaintext, text, &[], tag)
            .expect("it seals");
        black_box(&mut out);
    };
    take_turns(
        bursts,
        &mut [
            &mut bursting(ours),
            &mut bursting(in_place),
            &mut bursting(out_of_place),
        ],
    )
}

fn open_round(bursts: usize) -> (f64, f64) {
    let key = SecretKey::generate();
    let plaintext = vec![0x5a; CHUNK_BYTES];
    let message = seal(&key, &context(), &plaintext);
    let header = message
        .first_chunk::<HEADER_BYTES>()
        .expect("a message has a header");
    let opener = Opener::new(&key, &context(), header, message.len() as u64)
        .expect("our own message is accepted");
    let sealed = &message[HEADER_BYTES..HEADER_BYTES + SEALED_CHUNK_BYTES];
    let mut opened = vec![0; CHUNK_BYTES];
    let ours = || {
        opener
            .open_chunk(0, sealed, &mut opened)
            .expect("our own chunk opens");
        black_box(&mut opened);
    };
    let cipher = Cipher::new();
    let mut text = plaintext;
    let tag = cipher
        .key
        .seal_in_place_separate_tag(cipher.nonce(), Aad::empty(), &mut text);
    let tag = tag.expect("it seals");
    let mut copy = text.clone();
    // Opening in place leaves plaintext where ciphertext was, so it needs a copy for each chunk,
    // which is not the cipher's fault: opening out of place is its only form that compares.
    let out_of_place = || {
        cipher
            .key
            .open_separate_gather(cipher.nonce(), Aad::empty(), &text, tag.as_ref(), &mut copy)
            .expect("it opens");
        black_box(&mut copy);
    };
    take_turns(
        bursts,
        &mut [&mut bursting(ours), &mut bursting(out_of_place)],
    )
}

/// So many chunks in a row.
fn bursting(mut chunk: impl FnMut()) -> impl FnMut() {
    move || (0..BURST_CHUNKS).for_each(|_| chunk())
}

/// Bursts of each in turn: ours first, then the forms of the cipher. Returns our speed and that
/// of the cipher's fastest form, in GB/s of CPU time: of each, that of its middle burst, which no
/// disturbance of a few bursts moves.
fn take_turns(bursts: usize, contestants: &mut [&mut dyn FnMut()]) -> (f64, f64) {
    let mut seconds = vec![Vec::new(); contestants.len()];
    for burst in 0..bursts {
        for turn in 0..contestants.len() {
            // Who follows whom changes, for the first after a change runs on colder caches.
            let who = (turn + burst) % contestants.len();
            let start = thread_cpu_seconds();
            contestants[who]();
            seconds[who].push(thread_cpu_seconds() - start);
        }
    }
    let gigabytes = (BURST_CHUNKS * CHUNK_BYTES) as f64 / 1e9;
    let medians = seconds.iter().filter_map(|seconds| median(seconds));
    let mut speeds = medians.map(|seconds| gigabytes / seconds);
    let ours = speeds.next().unwrap_or(f64::NAN);
    (ours, speeds.fold(f64::NAN, f64::max))
}

fn context() -> Context {
    Context::blob(BucketId([1; 16]), BlobId([2; 16]))
}

/// The cipher with nothing around it but nonces that differ.
struct Cipher {
    key: LessSafeKey,
    count: u64,
}

impl Cipher {
    fn new() -> Self {
        let key = UnboundKey::new(&AES_256_GCM, &[7; 32]).expect("the key has the right length");
        Self {
            key: LessSafeKey::new(key),
            count: 0,
        }
    }

    fn nonce(&self) -> Nonce {
        let mut nonce = [0; NONCE_LEN];
        nonce[4..].copy_from_slice(&self.count.to_be_bytes());
        Nonce::assume_unique_for_key(nonce)
    }

    fn next_nonce(&mut self) -> Nonce {
        self.count += 1;
        self.nonce()
    }
}

const _: () = assert!(SEALED_CHUNK_BYTES == CHUNK_BYTES + TAG_BYTES);
