//! What making a key costs: `cargo run --release -p coffer-seal --example key_speed`.

use std::hint::black_box;
use std::time::Instant;

use coffer_seal::{BlobId, Context, KeyKind, SecretKey, locked_memory, unwrap_key, wrap_key};

const ROUNDS: u32 = 200_000;

fn main() {
    let wrapping_key = SecretKey::generate();
    let context = Context::key(KeyKind::Data(BlobId([7; 16])), 1);
    let wrapped = wrap_key(&wrapping_key, &context, &SecretKey::generate());
    tell("a box of 32 bytes", 1, || {
        black_box(Box::new([0_u8; 32]));
    });
    let key = SecretKey::generate();
    tell("clone and drop a key", 1, || {
        black_box(key.clone());
    });
    tell("the same, two threads at once", 2, || {
        black_box(key.clone());
    });
    tell("generate and drop a key", 1, || {
        black_box(SecretKey::generate());
    });
    tell("unwrap a data key", 1, || {
        let _ = black_box(unwrap_key(&wrapping_key, &context, &wrapped));
    });
    println!("{:?}", locked_memory());
}

/// Time of one call on each thread.
fn tell(what: &str, thread_count: usize, act: impl Fn() + Sync) {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..thread_count {
            scope.spawn(|| (0..ROUNDS).for_each(|_| act()));
        }
    });
    let nanoseconds = start.elapsed().as_nanos() / u128::from(ROUNDS);
    println!("{what:32} {nanoseconds:6} ns");
}
