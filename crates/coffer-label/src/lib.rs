//! Ranks, categories, labels and clearances.
