//! How gateways own buckets and commit to them in an object store, as a model that is searched
//! whole (`docs/decisions/0054-an-engine-of-several-gateways.md`).
//!
//! The store is linearizable for single objects. Requests to it may be late, lost, or done with
//! their answers lost. Gateways crash. They pause at any point, for any time: that is, others take
//! steps and they don't. Leases end at any moment, which a gateway's clock tells when it runs and
//! looks.
//!
//! Two things are asked of each state: what was acknowledged is in the log where it was
//! acknowledged, and no answer to a read lacks what was acknowledged before.

#![forbid(unsafe_code)]

mod state;

mod protocol;

mod search;

mod reads;

mod standing;

pub use protocol::Step;
pub use reads::{ANSWERED, FRESH_READS, ReadRules, ReadState, ReadStep, Readers, TAKEN};
pub use search::{Bounds, Cluster, DURABLE, FRESH, PROGRESS, TAKEN_OVER};
pub use standing::{
    STANDS_AGAIN, STANDS_FRESH, Standers, StandingRules, StandingState, StandingStep,
};
pub use state::{Gateway, Rules, State};
