//! Old meshes that events are taken out of, so that nothing of them is lost when they go.
//!
//! ```text
//!   channel orders            first          ack floor      last sent     high-water mark
//!                               │ 3 │ 4 │ 5 │ 6 │ … │ 17 │ 18 │ … │ 40 │ … │ 52 │
//!   subscription audit          └─ acknowledged ─┘  └─ outstanding ─┘   └ unsent ┘
//! ```
//! An [`Origin`] tells what an old mesh holds and how far its subscribers are, holds its publishers off ([`Fence`]), hands
//! out what nobody has acknowledged ([`Reader`]), and is left as it was found but for that. What an event of it means, where
//! it goes and when all of this happens is for others to know. [`conformance`] is what every adapter promises:
//! [`recorded`] reads a directory, [`nats_streaming`] and
//! [`jetstream`] ask servers. Objects, which servers of events do not know, come from
//! elsewhere ([`kubernetes`], [`manifests`]).

pub mod conformance;
pub mod counters;
pub mod fuzzing;
pub mod jetstream;
pub mod kubernetes;
pub mod manifests;
mod nats;
pub mod nats_streaming;
pub mod origin;
pub mod recorded;
mod rest;

pub use counters::{AckFloor, Channel, Contradiction, Fence, FenceBroken, FenceHold, Subscription};
pub use counters::{Sequence, SubscriptionId};
pub use nats::{Credentials, NatsDeps, NatsServer, NatsTimeouts};
pub use origin::{Answer, Error, Origin, OriginEvent, OriginObjects, OriginRead, Reader};
