//! Lifecycle rules: when objects end by themselves, as a bucket's owner says. Pure functions: no
//! I/O and no clock. What acts by them is in `upkeep`.

mod rules;

mod judge;

pub use self::judge::{Day, Ending};
pub use self::rules::{
    Expiration, FilterForm, LifecycleFilter, LifecycleRule, LifecycleRules, Noncurrent, RuleFault,
};
