//! Pipes to subscribers: they may not open, break, or swallow the answer.

use std::io;
use std::time::Duration;

use heddle_rt::net::dial::{Connect, Connecting, Place, Stream};
use heddle_rt::{OnError, Tasks};

use super::subscriber::{Manner, Subscribers};

/// The network of one life of the process, as the courier sees it.
#[derive(Clone, Debug)]
pub(super) struct Wires {
    pub(super) subscribers: Subscribers,
    pub(super) tasks: Tasks,
}

impl Connect for Wires {
    fn connect(&self, place: &Place) -> Connecting {
        let (wires, host) = (self.clone(), place.host.clone());
        Box::pin(async move {
            let subscribers = wires.subscribers;
            if subscribers.manner(&host) == Manner::Moody {
                let pause = subscribers.chance.below(100);
                subscribers.clock.sleep(Duration::from_millis(pause)).await;
                if subscribers.chance.below(8) == 0 {
                    return Err(io::ErrorKind::ConnectionRefused.into());
                }
            }
            let (near, far) = tokio::io::duplex(16 << 10);
            // A pipe ends with the process, so whatever comes through it is of this life.
            let life = subscribers.book.lock().life;
            wires
                .tasks
                .spawn("subscriber", OnError::Report, async move {
                    subscribers.serve(&host, far, || life).await;
                });
            Ok(Box::new(near) as Box<dyn Stream>)
        })
    }
}
