//! Who was found to give the same bytes before anything was timed.

use serde::{Deserialize, Serialize};

/// Contenders that were found to give the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreement {
    /// The algorithm.
    pub algorithm: String,
    /// Who was compared.
    pub contenders: Vec<String>,
    /// How many published vectors each was held against.
    pub vector_count: usize,
    /// How many random messages were compared between them, in each direction.
    pub random_count: usize,
}

impl Agreement {
    /// In a sentence. One alone agrees with the vectors, and opens what it made.
    pub fn line(&self) -> String {
        let (algorithm, vectors, random) = (&self.algorithm, self.vector_count, self.random_count);
        match self.contenders.len() {
            0 | 1 => format!(
                "{algorithm}: one contender, right on {vectors} vectors, and on {random} random \
                 messages there and back."
            ),
            count => format!(
                "{algorithm}: {count} contenders agree on {vectors} vectors and {random} random \
                 messages."
            ),
        }
    }
}
