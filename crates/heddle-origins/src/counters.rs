//! How far an old mesh and its subscribers are, in numbers that it gave us; and whether those can be true.
//!
//! Pure: what follows from the numbers is worked out here, once, for every adapter.

/// The place of an event in a channel. The first is 1.
pub type Sequence = u64;

/// What was accepted by a channel, and what of it is still there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    pub name: String,
    /// The oldest event that is kept; `high_water + 1` when none is.
    pub first: Sequence,
    /// The newest event that was accepted; 0 when none ever was.
    pub high_water: Sequence,
    /// How many events are kept.
    pub events: u64,
    pub bytes: u64,
}

/// Which subscription.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionId {
    pub channel: String,
    /// The client it belongs to, where names are the client's own.
    pub client: Option<String>,
    /// The name that outlives its connection.
    pub durable: String,
    /// The group whose members share it.
    pub group: Option<String>,
}

impl std::fmt::Display for SubscriptionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "subscription {}", self.durable)?;
        if let Some(group) = &self.group {
            write!(f, " of group {group}")?;
        }
        if let Some(client) = &self.client {
            write!(f, " of client {client}")?;
        }
        write!(f, " on channel {}", self.channel)
    }
}

/// Up to where everything is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckFloor {
    Exactly(Sequence),
    /// The old mesh only counts what is open. It is this or lower.
    AtMost(Sequence),
}

/// How far a subscription is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    pub id: SubscriptionId,
    /// Whether it outlives its connection. One that does not has nothing that could be taken over.
    pub is_durable: bool,
    /// Whether somebody consumes it.
    pub is_attached: bool,
    pub ack_floor: AckFloor,
    /// The newest event that was sent.
    pub last_sent: Sequence,
    /// Sent and not acknowledged.
    pub outstanding: u64,
    /// Kept and not sent yet.
    pub unsent: u64,
    /// Accepted, and removed by the channel's own limits before it was sent.
    pub expired: u64,
}

impl Subscription {
    /// What was accepted for it and not acknowledged.
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.outstanding.saturating_add(self.unsent)
    }

    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.pending() == 0
    }

    /// Counts another member of the same group in: members share what is unsent, and each has its own outstanding.
    pub(crate) fn join(&mut self, member: Self) {
        self.is_attached |= member.is_attached;
        self.last_sent = self.last_sent.max(member.last_sent);
        self.unsent = self.unsent.min(member.unsent);
        self.expired = self.expired.min(member.expired);
        self.outstanding = self.outstanding.saturating_add(member.outstanding);
        self.ack_floor = AckFloor::AtMost(self.last_sent.saturating_sub(self.outstanding));
    }
}

/// How a fence keeps publishers away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceHold {
    /// The old mesh refuses everything that is published.
    Everybody,
    /// It refuses the publishers that were named; others are found out by the counters.
    Named,
    /// It refuses nobody: whoever publishes is found out by the counters.
    Watched,
}

/// From here on nothing is published to a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    pub channel: String,
    /// The newest event before the fence.
    pub high_water: Sequence,
    pub hold: FenceHold,
}

/// Somebody published behind a fence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("channel {channel} was at {fenced} when it was fenced and is at {found}")]
pub struct FenceBroken {
    pub channel: String,
    pub fenced: Sequence,
    pub found: Sequence,
}

impl Fence {
    /// Whether a channel still is where it was fenced.
    pub fn check(&self, channel: &Channel) -> Result<(), FenceBroken> {
        if channel.name == self.channel && channel.high_water == self.high_water {
            return Ok(());
        }
        Err(FenceBroken {
            channel: channel.name.clone(),
            fenced: self.high_water,
            found: channel.high_water,
        })
    }
}

/// Numbers that cannot all be true.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the counters of {of} contradict each other: {how}")]
pub struct Contradiction {
    pub of: String,
    pub how: String,
}

fn contradiction(of: impl ToString, how: String) -> Contradiction {
    Contradiction {
        of: of.to_string(),
        how,
    }
}

impl Channel {
    /// Whether the numbers agree with each other.
    pub fn check(&self) -> Result<(), Contradiction> {
        let of = || format!("channel {}", self.name);
        let Some(end) = self.high_water.checked_add(1) else {
            return Err(contradiction(of(), "there is no number left".to_owned()));
        };
        if self.first == 0 || self.first > end {
            let how = format!(
                "the first is {} and the last {}",
                self.first, self.high_water
            );
            return Err(contradiction(of(), how));
        }
        // There may be fewer: some old meshes remove events out of the middle.
        if self.events > end - self.first {
            let how = format!(
                "{} are kept from {} to {}",
                self.events, self.first, self.high_water
            );
            return Err(contradiction(of(), how));
        }
        Ok(())
    }
}

impl Subscription {
    /// Whether the numbers agree with each other and with the channel's, which must be at least as new.
    pub fn check(&self, channel: &Channel) -> Result<(), Contradiction> {
        let fail = |how: String| Err(contradiction(&self.id, how));
        let (last_sent, last) = (self.last_sent, channel.high_water);
        if last_sent > last {
            return fail(format!(
                "{last_sent} was sent last and {last} accepted last"
            ));
        }
        let (AckFloor::Exactly(floor) | AckFloor::AtMost(floor)) = self.ack_floor;
        if floor > last_sent {
            return fail(format!(
                "{floor} is acknowledged and {last_sent} was sent last"
            ));
        }
        let open = last_sent - floor;
        let too_many = match self.ack_floor {
            AckFloor::Exactly(_) => self.outstanding > open,
            AckFloor::AtMost(_) => self.outstanding != open,
        };
        if too_many {
            let outstanding = self.outstanding;
            return fail(format!(
                "{outstanding} are outstanding between {floor} and {last_sent}"
            ));
        }
        if self.unsent > last - last_sent {
            let unsent = self.unsent;
            return fail(format!(
                "{unsent} are unsent between {last_sent} and {last}"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
