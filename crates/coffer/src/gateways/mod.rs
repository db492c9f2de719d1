//! Gateways of an engine among each other: one that follows forwards what it is asked to the one
//! that serves, over TLS in which both prove that they are of the same engine.

pub mod identity;

pub mod authority;

pub mod connector;

pub mod told;

pub mod sent_body;

pub mod forward;

pub mod ask;
