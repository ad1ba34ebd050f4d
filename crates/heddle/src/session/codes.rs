//! Codes that stand for a login, once and for a minute: for links that open the page.

use std::collections::HashMap;
use std::time::Duration;

use heddle_apiserver::{TokenDigest, TokenHolder, digest};

/// How long a code is good.
pub(super) const CODE_LIFE: Duration = Duration::from_secs(60);
/// Codes that wait to be used; with more, the oldest goes.
const CODES_MAX: usize = 100;
/// And of one user, so that nobody makes those of others go.
const CODES_EACH_MAX: usize = 5;

#[derive(Debug, Default)]
pub(super) struct LoginCodes {
    /// By digest, with the end of each by the monotonic clock.
    waiting: HashMap<TokenDigest, (Duration, TokenHolder)>,
}

impl LoginCodes {
    pub(super) fn put(&mut self, code: &str, holder: TokenHolder, now: Duration) {
        self.waiting.retain(|_, (ends, _)| now < *ends);
        let user = &holder.identity.user;
        let is_own = |other: &TokenHolder| other.identity.user == *user;
        let own = self.waiting.values().filter(|(_, other)| is_own(other));
        if own.count() >= CODES_EACH_MAX {
            self.forget_first(is_own);
        }
        if self.waiting.len() >= CODES_MAX {
            self.forget_first(|_| true);
        }
        let ends = now.saturating_add(CODE_LIFE);
        self.waiting.insert(digest(code), (ends, holder));
    }

    fn forget_first(&mut self, is_meant: impl Fn(&TokenHolder) -> bool) {
        let meant = self.waiting.iter();
        let meant = meant.filter(|(_, (_, holder))| is_meant(holder));
        let first = meant.min_by_key(|(_, (ends, _))| *ends);
        if let Some(first) = first.map(|(code, _)| *code) {
            self.waiting.remove(&first);
        }
    }

    /// Whom a code logs in. It does so once.
    pub(super) fn take(&mut self, code: &str, now: Duration) -> Option<TokenHolder> {
        let (ends, holder) = self.waiting.remove(&digest(code))?;
        (now < ends && !holder.ended.is_cancelled()).then_some(holder)
    }
}
