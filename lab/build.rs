//! Compiles AES in plain C, with the optimisation that kernels are built with.

fn main() {
    let sources = ["c/aes_loop.c", "c/aes_plain.c", "c/aes_plain_modes.c"];
    for file in sources.iter().chain(&["c/aes_plain.h"]) {
        println!("cargo::rerun-if-changed={file}");
    }
    // -O2 in every profile: a debug build would otherwise measure something else, and the kernel
    // module that shares these files is built with -O2 too.
    cc::Build::new()
        .files(sources)
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .std("gnu11")
        .compile("aes_plain");
}
