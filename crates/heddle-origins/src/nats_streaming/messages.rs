//! The messages of NATS Streaming that a subscriber needs, in protocol buffers. Pure.
//!
//! What is unknown is skipped, what has the wrong sort is refused, and a text that is none is refused too.

use heddle_api::protobuf::{Fields, Malformed, Wire, Writer};

/// The first message: who we are.
#[derive(Debug)]
pub(super) struct ConnectRequest<'a> {
    pub(super) client: &'a str,
    pub(super) heartbeats: &'a str,
    /// Tells this connection apart from others of the same client.
    pub(super) connection: &'a str,
    pub(super) ping_seconds: u64,
    pub(super) pings_max: u64,
}

impl ConnectRequest<'_> {
    pub(super) fn encode(&self) -> Vec<u8> {
        Writer::default()
            .bytes(1, self.client)
            .bytes(2, self.heartbeats)
            .number(3, 1)
            .bytes(4, self.connection)
            .number(5, self.ping_seconds)
            .number(6, self.pings_max)
            .finish()
    }
}

/// Where to ask for what.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ConnectResponse {
    pub(super) publish: String,
    pub(super) subscribe: String,
    pub(super) close: String,
    pub(super) close_subscription: String,
    pub(super) ping: String,
    pub(super) ping_seconds: u64,
    pub(super) error: String,
}

impl ConnectResponse {
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut response = Self::default();
        for field in Fields(bytes) {
            match field? {
                (1, Wire::Bytes(bytes)) => response.publish = text(bytes)?,
                (2, Wire::Bytes(bytes)) => response.subscribe = text(bytes)?,
                (4, Wire::Bytes(bytes)) => response.close = text(bytes)?,
                (5, Wire::Bytes(bytes)) => response.error = text(bytes)?,
                (6, Wire::Bytes(bytes)) => response.close_subscription = text(bytes)?,
                (7, Wire::Bytes(bytes)) => response.ping = text(bytes)?,
                (8, Wire::Varint(seconds)) => response.ping_seconds = seconds,
                (1 | 2 | 4..=8, _) => return Err(WRONG),
                _ => {}
            }
        }
        Ok(response)
    }
}

/// Begins to receive.
#[derive(Debug)]
pub(super) struct SubscriptionRequest<'a> {
    pub(super) client: &'a str,
    pub(super) channel: &'a str,
    pub(super) group: &'a str,
    pub(super) inbox: &'a str,
    pub(super) in_flight_max: u64,
    pub(super) ack_wait_seconds: u64,
    pub(super) durable: &'a str,
}

impl SubscriptionRequest<'_> {
    pub(super) fn encode(&self) -> Vec<u8> {
        // From the first: of a durable that exists its own place counts, and if it should not exist, nothing may be missed.
        const FIRST: u64 = 4;
        Writer::default()
            .bytes(1, self.client)
            .bytes(2, self.channel)
            .bytes(3, self.group)
            .bytes(4, self.inbox)
            .number(5, self.in_flight_max)
            .number(6, self.ack_wait_seconds)
            .bytes(7, self.durable)
            .number(10, FIRST)
            .finish()
    }
}

/// The answer to a subscription, and to its end.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SubscriptionResponse {
    pub(super) acks: String,
    pub(super) error: String,
}

impl SubscriptionResponse {
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut response = Self::default();
        for field in Fields(bytes) {
            match field? {
                (2, Wire::Bytes(bytes)) => response.acks = text(bytes)?,
                (3, Wire::Bytes(bytes)) => response.error = text(bytes)?,
                (2 | 3, _) => return Err(WRONG),
                _ => {}
            }
        }
        Ok(response)
    }
}

/// Ends a subscription. Whether its durable stays is decided by where this is sent to.
pub(super) fn unsubscribe_request(client: &str, channel: &str, inbox: &str) -> Vec<u8> {
    Writer::default()
        .bytes(1, client)
        .bytes(2, channel)
        .bytes(3, inbox)
        .finish()
}

/// Ends a connection.
pub(super) fn close_request(client: &str) -> Vec<u8> {
    Writer::default().bytes(1, client).finish()
}

/// Says that we are still there, and asks whether the server thinks so.
pub(super) fn ping(connection: &str) -> Vec<u8> {
    Writer::default().bytes(1, connection).finish()
}

/// The error of an answer that has nothing else in it: to a ping, or to the end of a connection.
pub(crate) fn error_of(bytes: &[u8]) -> Result<String, Malformed> {
    let mut error = String::new();
    for field in Fields(bytes) {
        match field? {
            (1, Wire::Bytes(bytes)) => error = text(bytes)?,
            (1, _) => return Err(WRONG),
            _ => {}
        }
    }
    Ok(error)
}

/// An event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamedEvent<'b> {
    pub(crate) sequence: u64,
    pub(super) subject: String,
    pub(super) data: &'b [u8],
    /// Nanoseconds since 1970.
    pub(super) at: i64,
    pub(super) redelivered: bool,
    crc32: Option<u32>,
}

impl<'b> StreamedEvent<'b> {
    /// # Errors
    /// Also when the checksum, which servers may add, is of something else.
    pub(crate) fn decode(bytes: &'b [u8]) -> Result<Self, Malformed> {
        let mut delivery = Self::default();
        for field in Fields(bytes) {
            match field? {
                (1, Wire::Varint(sequence)) => delivery.sequence = sequence,
                (2, Wire::Bytes(bytes)) => delivery.subject = text(bytes)?,
                (4, Wire::Bytes(bytes)) => delivery.data = bytes,
                (5, Wire::Varint(at)) => delivery.at = at.cast_signed(),
                (6, Wire::Varint(flag)) => delivery.redelivered = flag != 0,
                (10, Wire::Varint(crc)) => {
                    let crc = u32::try_from(crc).map_err(|_| WRONG)?;
                    delivery.crc32 = Some(crc);
                }
                (1 | 2 | 4..=6 | 10, _) => return Err(WRONG),
                _ => {}
            }
        }
        if delivery.sequence == 0 {
            return Err(Malformed("an event has no sequence"));
        }
        if delivery
            .crc32
            .is_some_and(|crc| crc != crc32(delivery.data))
        {
            return Err(Malformed("the checksum of an event is wrong"));
        }
        Ok(delivery)
    }
}

pub(super) fn ack(channel: &str, sequence: u64) -> Vec<u8> {
    Writer::default()
        .bytes(1, channel)
        .number(2, sequence)
        .finish()
}

const WRONG: Malformed = Malformed("a field has the wrong wire type");

fn text(bytes: &[u8]) -> Result<String, Malformed> {
    let text = std::str::from_utf8(bytes).map_err(|_| Malformed("a text is not UTF-8"))?;
    Ok(text.to_owned())
}

/// The IEEE one, bit by bit: a table would save time that is spent waiting for the network.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    };
    !bytes.iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_read_as_the_server_writes_it() {
        let bytes = Writer::default()
            .number(1, 7)
            .bytes(2, "orders")
            .bytes(4, "123456789")
            .number(5, 1_500_000_000)
            .number(6, 1)
            .number(7, 3)
            .number(10, 0xcbf4_3926)
            .finish();
        let delivery = StreamedEvent::decode(&bytes).unwrap();
        assert_eq!((delivery.sequence, delivery.at), (7, 1_500_000_000));
        assert_eq!(
            (delivery.subject.as_str(), delivery.data),
            ("orders", &b"123456789"[..])
        );
        assert!(delivery.redelivered);
    }

    #[test]
    fn what_is_no_event_is_refused() {
        let check = |writer: Writer, why| {
            assert_eq!(StreamedEvent::decode(&writer.finish()), Err(Malformed(why)));
        };
        let event = || Writer::default().number(1, 7);
        check(Writer::default(), "an event has no sequence");
        check(event().number(10, 1), "the checksum of an event is wrong");
        check(
            event().number(10, 1 << 32),
            "a field has the wrong wire type",
        );
        check(event().number(4, 1), "a field has the wrong wire type");
        check(event().bytes(2, [0xff]), "a text is not UTF-8");
    }

    #[test]
    fn answers_tell_where_to_ask_or_what_is_wrong() {
        let bytes = Writer::default()
            .bytes(2, "s")
            .bytes(6, "c")
            .number(8, 5)
            .finish();
        let response = ConnectResponse::decode(&bytes).unwrap();
        assert_eq!(
            (response.subscribe.as_str(), response.ping_seconds),
            ("s", 5)
        );
        assert_eq!(response.close_subscription, "c");
        let bytes = Writer::default().bytes(2, "acks").bytes(3, "no").finish();
        let response = SubscriptionResponse::decode(&bytes).unwrap();
        assert_eq!(
            (response.acks.as_str(), response.error.as_str()),
            ("acks", "no")
        );
        assert_eq!(
            error_of(&Writer::default().bytes(1, "gone").finish()),
            Ok("gone".to_owned())
        );
        assert_eq!(error_of(&[]), Ok(String::new()));
    }

    #[test]
    fn requests_have_the_numbers_of_the_protocol() {
        let request = SubscriptionRequest {
            client: "c",
            channel: "h",
            group: "",
            inbox: "i",
            in_flight_max: 64,
            ack_wait_seconds: 30,
            durable: "d",
        };
        let fields: Result<Vec<_>, _> = Fields(&request.encode())
            .map(|f| f.map(|(n, _)| n))
            .collect();
        assert_eq!(fields.unwrap(), [1, 2, 4, 5, 6, 7, 10]);
        assert_eq!(ack("h", 9), [0x0a, 1, b'h', 0x10, 9]);
    }
}
