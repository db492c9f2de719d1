//! Policies and lists from outside: AWS's examples, what is malformed, properties, speed.

#![expect(clippy::unwrap_used, reason = "what a test can not unwrap fails it")]

mod server;

mod examples;

mod malformed;

mod properties;

mod speed;

mod lists;

mod sharing;
