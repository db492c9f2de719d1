//! What a gateway that follows was told and answers by for a moment, without asking again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use coffer_seal::BucketId;

use super::question::ReadAnswer;
use crate::limits::ANSWERS_STAND_MARGIN;

/// Of each bucket, and of what is in none, the last answer that stands.
#[derive(Default)]
pub(super) struct StandingAnswers {
    answers: HashMap<Option<BucketId>, Standing>,
    /// What was read in by such answers since the last question.
    used: HashSet<Option<BucketId>>,
}

struct Standing {
    answer: Arc<ReadAnswer>,
    until: Duration,
}

impl StandingAnswers {
    /// Takes what stands of an answer to a question of that time.
    pub(super) fn take(&mut self, answer: &Arc<ReadAnswer>, asked: Duration, now: Duration) {
        self.answers.retain(|_, standing| standing.until > now);
        let Some(told) = &answer.standing else {
            return;
        };
        let lasts = Duration::from_millis(told.lasts_ms);
        // From when it was asked, for it may have been answered at once.
        let until = asked + lasts.saturating_sub(ANSWERS_STAND_MARGIN);
        let buckets = told.buckets.iter().filter_map(|id| BucketId::from_hex(id));
        for of in buckets.map(Some).chain([None]) {
            let answer = answer.clone();
            self.answers.insert(of, Standing { answer, until });
        }
    }

    /// The answer by which a read may be answered that has come by now.
    pub(super) fn of(&mut self, of: Option<BucketId>, now: Duration) -> Option<Arc<ReadAnswer>> {
        let standing = self.answers.get(&of).filter(|it| it.until > now)?;
        self.used.insert(of);
        Some(standing.answer.clone())
    }

    /// Whether any stands.
    pub(super) fn are_any(&self, now: Duration) -> bool {
        self.answers.values().any(|standing| standing.until > now)
    }

    /// What is to be asked for again before it is over, for it is being read in.
    pub(super) fn take_used(&mut self) -> HashSet<Option<BucketId>> {
        std::mem::take(&mut self.used)
    }

    /// Whether there is any.
    pub(super) fn are_used(&self) -> bool {
        !self.used.is_empty()
    }

    /// Nothing stands any more.
    pub(super) fn clear(&mut self) {
        self.answers.clear();
        self.used.clear();
    }
}
