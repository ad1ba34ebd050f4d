//! The terms of an account, and the query that lists the events of each: what a number counts can be opened wherever it stands.
//!
//! ```text
//!   matched + sent again = delivered + dead + expired + removed + lost + pending
//! ```
//! An account counts deliveries, which are pairs of an event and a consumer that wants it. A list is of one consumer, so it has
//! as many events as the number says, but for those that are older than what the log keeps, and for those that somebody had sent
//! again: such an event is listed once, by what became of it last, and counted each time.

use crate::ledger::Account;

/// One term of the equation.
#[derive(Clone, Copy, Debug)]
pub struct AccountTerm {
    /// In the word that people know it by.
    pub name: &'static str,
    pub count: fn(&Account) -> u64,
    /// The states of its events, as a query has them; `None` where nobody knows which they are.
    states: Option<&'static str>,
}

/// Every event that the consumer wants.
pub static MATCHED: AccountTerm = AccountTerm {
    name: "matched",
    count: |account| account.matched,
    states: Some(""),
};

/// What became of them, in the order of the equation.
pub static OUTCOMES: [AccountTerm; 6] = [
    outcome(
        "delivered",
        |account| account.delivered,
        Some(" state:delivered"),
    ),
    outcome("dead", |account| account.dead_lettered, Some(" state:dead")),
    outcome("expired", |account| account.expired, Some(" state:expired")),
    outcome("removed", |account| account.removed, Some(" state:removed")),
    outcome("lost", |account| account.lost, None),
    outcome(
        "pending",
        |account| account.pending,
        Some(" state:pending,delivering,retrying,waiting"),
    ),
];

const fn outcome(
    name: &'static str,
    count: fn(&Account) -> u64,
    states: Option<&'static str>,
) -> AccountTerm {
    AccountTerm {
        name,
        count,
        states,
    }
}

impl AccountTerm {
    /// The query that lists the events it counts at a consumer.
    #[must_use]
    pub fn query(&self, consumer: &str) -> Option<String> {
        let states = self.states?;
        Some(format!("consumer:\"{consumer}\"{states}"))
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::ledger::EventState;
    use crate::search::EventQuery;

    #[test]
    fn each_state_of_a_wanted_event_belongs_to_one_term_and_to_matched() {
        let key = "trigger/team-a/orders";
        let is_in = |term: &AccountTerm, state| {
            let query = term.query(key)?;
            let query = EventQuery::parse(&query, Timestamp::UNIX_EPOCH).unwrap();
            Some(query.matches_consumer(key, state))
        };
        for state in EventState::ALL {
            let wanted = u8::from(state != EventState::Filtered);
            let terms = OUTCOMES.iter().filter_map(|term| is_in(term, state));
            assert_eq!(terms.map(u8::from).sum::<u8>(), wanted, "{state:?}");
            assert_eq!(
                is_in(&MATCHED, state).map(u8::from),
                Some(wanted),
                "{state:?}"
            );
        }
    }
}
