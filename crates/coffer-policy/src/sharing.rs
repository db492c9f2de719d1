//! All that shares a bucket, put together: its policy, the lists, who owns objects, and what blocks
//! the public.

mod public_access;

mod decision;

pub use decision::{Shared, Sharing, decide};
pub use public_access::{PublicAccessBlock, PublicPolicy};
