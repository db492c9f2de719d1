//! Ranks, categories, labels and clearances.
//!
//! A [`Label`] says how sensitive something is: a rank, and a set of categories. Labels are
//! partially ordered by [`Label::dominates`] and form a lattice: any two have a least label above
//! both ([`Label::join`]) and a greatest below both ([`Label::meet`]). This is the model of Bell
//! and LaPadula ("Secure Computer System: Unified Exposition and Multics Interpretation", 1976),
//! and the text is that of SELinux MLS.
//!
//! ```
//! use coffer_label::{Clearance, Label};
//!
//! let recordings: Label = "s2:c1.c3,c7".parse()?;
//! let evidence: Label = "s1:c2,c9".parse()?;
//! assert!(!recordings.dominates(&evidence) && !evidence.dominates(&recordings));
//! assert_eq!(recordings.join(&evidence).to_string(), "s2:c1.c3,c7,c9");
//! assert_eq!(recordings.meet(&evidence).to_string(), "s1:c2");
//!
//! let officer: Clearance = "s0-s2:c0.c9".parse()?;
//! assert!(officer.contains(&recordings));
//! # Ok::<(), coffer_label::LabelError>(())
//! ```

#![forbid(unsafe_code)]

pub mod limits;

mod error;

mod rank;

mod category;

mod label;

mod clearance;

mod serde_text;

#[doc(hidden)]
pub mod fuzzing;

pub use category::{Categories, Category};
pub use clearance::Clearance;
pub use error::LabelError;
pub use label::Label;
pub use rank::Rank;
