//! How attempts were answered, by class of answer and by the Application that the events came from.
//!
//! A consumer has one of these beside its state, so that counting costs a step under a lock that is held anyway.

use crate::journal::ReplyFault;
use heddle_api::well_known::INTEGRATION_NAMESPACE;

/// Classes of answers, in the order of their counters. Without an answer there is none.
pub(super) const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// Applications that one consumer's numbers are split by. Few consumers hear from more than a handful.
pub(super) const APPLICATIONS_MAX: usize = 16;

/// What goes beyond a bound is put together under this name, which no object can have.
pub(super) const OVERFLOW: &str = "_overflow";

/// The Application behind an entry; empty when there is none.
pub(crate) fn application(entry: &str) -> &str {
    let channel = entry.strip_prefix("channel/");
    let name = channel.and_then(|channel| channel.strip_prefix(INTEGRATION_NAMESPACE));
    name.and_then(|name| name.strip_prefix('/'))
        .unwrap_or_default()
}

/// How the attempts of one consumer were answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    by_application: Vec<(Box<str>, [u64; CLASSES.len()])>,
    /// In the order of [`ReplyFault::ALL`].
    bad_replies: [u64; ReplyFault::ALL.len()],
}

impl Answers {
    /// Counts an attempt with an event that came in at `entry`. Status 0 is no answer.
    pub(crate) fn count(&mut self, entry: &str, status: u16) {
        let class = usize::from(status / 100).min(CLASSES.len() - 1);
        self.of(application(entry))[class] += 1;
    }

    /// Counts a reply that could not go on.
    pub(crate) fn count_bad_reply(&mut self, fault: ReplyFault) {
        let mut counted = ReplyFault::ALL.into_iter().zip(&mut self.bad_replies);
        if let Some((_, count)) = counted.find(|(known, _)| *known == fault) {
            *count += 1;
        }
    }

    /// Fault of replies and count, without those that are zero.
    pub(super) fn bad_replies(&self) -> impl Iterator<Item = (ReplyFault, u64)> {
        let counted = ReplyFault::ALL.into_iter().zip(self.bad_replies);
        counted.filter(|(_, count)| *count > 0)
    }

    /// The counters of an Application. A list, for it is short and nearly always has one item.
    fn of(&mut self, application: &str) -> &mut [u64; CLASSES.len()] {
        let known = |name: &str| {
            let mut all = self.by_application.iter();
            all.position(|(known, _)| &**known == name)
        };
        let full = self.by_application.len() >= APPLICATIONS_MAX;
        let index = known(application).or_else(|| full.then(|| known(OVERFLOW)).flatten());
        let index = index.unwrap_or_else(|| {
            let name = if full { OVERFLOW } else { application };
            self.by_application.push((name.into(), Default::default()));
            self.by_application.len() - 1
        });
        &mut self.by_application[index].1
    }

    /// Application, class of answer and count, without those that are zero.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'static str, u64)> {
        self.by_application
            .iter()
            .flat_map(|(application, counts)| {
                let counted = CLASSES.into_iter().zip(*counts);
                let counted = counted.filter(|(_, count)| *count > 0);
                counted.map(|(class, count)| (&**application, class, count))
            })
    }

    /// Adds the answers of another consumer, whatever the Application.
    pub(super) fn absorb(&mut self, other: &Self) {
        for (_, counts) in &other.by_application {
            let sums = self.of("");
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum += count;
            }
        }
        for (sum, count) in self.bad_replies.iter_mut().zip(other.bad_replies) {
            *sum += count;
        }
    }
}
