//! The administration front door: health, metrics, verify.
