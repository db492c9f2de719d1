//! The keystore: root-key sources, level and bucket keys.
