//! For the fuzzer: any bytes, taken for what a NATS Streaming server says.

use super::messages::{ConnectResponse, StreamedEvent, SubscriptionResponse, error_of};
use super::monitor::{Channelz, counted};
use super::reader;
use crate::origin::Error;

/// Any bytes as each of the messages, and as an event.
///
/// # Panics
/// When the promise does not hold.
pub fn message(soup: &[u8]) {
    drop(ConnectResponse::decode(soup));
    drop(SubscriptionResponse::decode(soup));
    drop(error_of(soup));
    if let Ok(delivery) = StreamedEvent::decode(soup) {
        assert_ne!(delivery.sequence, 0);
    }
    match reader::event(soup) {
        Ok(event) => assert!(event.data.len() < soup.len()),
        Err(error) => assert!(matches!(error, Error::Corrupt(_))),
    }
}

/// Any text as counters: they are refused, or they agree.
///
/// # Panics
/// When the promise does not hold.
pub fn monitoring(soup: &[u8]) {
    let Ok(channelz) = serde_json::from_slice::<Channelz>(soup) else {
        return;
    };
    if let Ok((channel, subscriptions)) = counted(channelz) {
        assert_eq!(channel.check(), Ok(()));
        for subscription in subscriptions {
            assert!(subscription.last_sent <= channel.high_water);
        }
    }
}
