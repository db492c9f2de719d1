//! The data port: sealed bytes over HTTP/1.1, for those who have a ticket
//! (docs/SEALED-TRANSFER.md).
//!
//! It knows no names and no keys. What is sent goes from the page cache to the socket without
//! passing through the program, also by TLS, where the kernel encrypts.

pub mod head;

pub mod kernel_tls;

pub mod records;

pub mod handshake;

pub mod peer;

pub mod send;

pub mod receive;

pub mod listener;
