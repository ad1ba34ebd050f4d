use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::{
    DataPlane, Fate, GivenUp, GivingUp, MeshReading, Resources, RoutedConsumer, RoutingState,
};

/// A mesh that knows at most one consumer.
#[derive(Debug, Default)]
struct One {
    consumer: Option<RoutedConsumer>,
    rejected: Option<String>,
}

impl DataPlane for One {
    fn asks_who(&self) -> bool {
        true
    }

    fn base_url(&self) -> Option<String> {
        None
    }

    fn log_health(&self) -> Result<(), String> {
        Ok(())
    }

    fn consumer(&self, _: &str) -> Option<RoutedConsumer> {
        self.consumer.clone()
    }

    fn rejected(&self, _: &str) -> Option<String> {
        self.rejected.clone()
    }

    fn entry(&self, _: &str) -> bool {
        false
    }

    fn application_open(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn pending(&self, _: &str) -> u64 {
        0
    }

    fn pending_through(&self, _: &str, _: &str) -> u64 {
        0
    }

    fn give_up(&self, _: &str, _: &str, _: Fate, _: &str) -> GivingUp {
        Box::pin(std::future::ready(Ok(GivenUp::default())))
    }

    fn reading(&self) -> MeshReading {
        MeshReading::default()
    }

    fn route(&self, _: Resources) {}

    fn changed(&self, _: u64) -> BoxFuture<'static, u64> {
        std::future::pending().boxed()
    }
}

fn ask(plane: &One) -> RoutingState {
    RoutingState::ask(Some(plane), "trigger/ns/t", Some("u1"), Some(4))
}

fn known(uid: &str, generation: i64) -> One {
    One {
        consumer: Some(RoutedConsumer {
            uid: uid.to_owned(),
            generation,
            held: None,
            over_quota: None,
            bad_replies: None,
            faults: Vec::new(),
        }),
        rejected: None,
    }
}

#[test]
fn only_this_uid_at_this_generation_counts_as_in_force() {
    let yes = RoutingState::Yes {
        held: None,
        over_quota: None,
        bad_replies: None,
        faults: Vec::new(),
    };
    assert_eq!(ask(&known("u1", 4)), yes);
    assert_eq!(ask(&known("u1", 3)), RoutingState::Stale);
    assert_eq!(ask(&known("u1", 5)), RoutingState::Stale);
    assert_eq!(
        ask(&known("u2", 4)),
        RoutingState::Stale,
        "a namesake made since"
    );
    assert_eq!(ask(&One::default()), RoutingState::Absent);
    assert_eq!(
        RoutingState::ask(None, "trigger/ns/t", Some("u1"), Some(4)),
        RoutingState::NoMesh
    );
}

#[test]
fn what_was_left_out_of_the_table_says_why_even_over_an_earlier_state() {
    let rejected = One {
        rejected: Some("bad".to_owned()),
        ..known("u1", 3)
    };
    assert_eq!(ask(&rejected), RoutingState::Rejected("bad".to_owned()));
}
