//! The counters of a NATS Streaming server, which it tells over HTTP.
//!
//! A server that is a follower in a cluster does not count, so its numbers are not taken. Numbers are read one after the
//! other by the server too: those that contradict each other are asked for again before they are called wrong.

use bytes::Bytes;
use heddle_rt::net::client::ask_once;
use heddle_rt::net::dial::Place;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use serde::Deserialize;

use super::united;
use crate::counters::{AckFloor, Channel, Subscription, SubscriptionId};
use crate::nats::NatsDeps;
use crate::origin::Error;

/// The longest answer.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// How many channels are asked for at once, and how many an old mesh may have.
const PAGE: usize = 200;
const CHANNELS_MAX: usize = 100_000;
/// How often numbers are asked for that contradict each other.
const ATTEMPTS: usize = 3;

#[derive(Debug)]
pub(super) struct Monitor {
    deps: NatsDeps,
    place: Place,
    cluster: String,
}

/// What a server says of itself.
#[derive(Debug, Deserialize)]
struct Serverz {
    cluster_id: String,
    state: String,
    #[serde(default)]
    role: String,
}

/// A page of channels.
#[derive(Debug, Deserialize)]
struct Channelsz {
    total: usize,
    #[serde(default)]
    channels: Vec<Channelz>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Channelz {
    name: String,
    msgs: u64,
    bytes: u64,
    first_seq: u64,
    last_seq: u64,
    #[serde(default)]
    subscriptions: Vec<Subscriptionz>,
}

#[derive(Debug, Deserialize)]
struct Subscriptionz {
    client_id: String,
    inbox: String,
    #[serde(default)]
    durable_name: String,
    #[serde(default)]
    queue_name: String,
    is_durable: bool,
    is_offline: bool,
    last_sent: u64,
    pending_count: u64,
}

impl Monitor {
    pub(super) fn new(deps: &NatsDeps, place: &Place, cluster: &str) -> Self {
        let mut deps = deps.clone();
        deps.tasks = deps.tasks.child("monitoring");
        Self {
            deps,
            place: place.clone(),
            cluster: cluster.to_owned(),
        }
    }

    pub(super) async fn channels(&self) -> Result<Vec<Channel>, Error> {
        self.counts().await?;
        let mut all = std::collections::BTreeMap::new();
        let mut offset = 0;
        loop {
            let query = format!("subs=1&limit={PAGE}&offset={offset}");
            let page: Channelsz = self.ask("channelsz", &query).await?.ok_or_else(not_there)?;
            let (count, total) = (page.channels.len(), page.total);
            for channelz in page.channels {
                let (channel, _) = counted(channelz)?;
                all.insert(channel.name.clone(), channel);
            }
            offset += count;
            if count == 0 || offset >= total {
                return Ok(all.into_values().collect());
            }
            if offset > CHANNELS_MAX {
                let text = format!("the old mesh has more than {CHANNELS_MAX} channels");
                return Err(Error::Invalid(text));
            }
        }
    }

    pub(super) async fn channel(&self, name: &str) -> Result<(Channel, Vec<Subscription>), Error> {
        self.counts().await?;
        let name_encoded: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
        let query = format!("channel={name_encoded}&subs=1");
        let mut attempt = 1;
        loop {
            let found: Option<Channelz> = self.ask("channelsz", &query).await?;
            let found =
                found.ok_or_else(|| Error::NotFound(format!("there is no channel {name}")))?;
            if found.name != name {
                let text = format!(
                    "asked for channel {name}, the server answers for {}",
                    found.name
                );
                return Err(Error::Corrupt(text));
            }
            match counted(found) {
                Err(_) if attempt < ATTEMPTS => attempt += 1,
                counted => return counted,
            }
        }
    }

    pub(super) async fn subscription(&self, id: &SubscriptionId) -> Result<Subscription, Error> {
        let (_, subscriptions) = self.channel(&id.channel).await?;
        let mut found = subscriptions.into_iter();
        let found = found.find(|subscription| subscription.id == *id);
        found.ok_or_else(|| Error::NotFound(format!("there is no {id}")))
    }

    /// Whether this server is the one whose numbers count.
    async fn counts(&self) -> Result<(), Error> {
        let server: Serverz = self.ask("serverz", "").await?.ok_or_else(not_there)?;
        if server.cluster_id != self.cluster {
            let found = server.cluster_id;
            let text = format!(
                "the server belongs to cluster {found}, not to {}",
                self.cluster
            );
            return Err(Error::Invalid(text));
        }
        let is_alone = server.state == "STANDALONE" || server.state == "FT_ACTIVE";
        let is_leader = server.state == "CLUSTERED" && server.role == "Leader";
        if is_alone || is_leader {
            return Ok(());
        }
        let text = format!(
            "the server is {} {} and does not count",
            server.state, server.role
        );
        Err(Error::Unavailable(text))
    }

    /// Nothing when the server says that there is none.
    async fn ask<T: serde::de::DeserializeOwned>(
        &self,
        what: &str,
        query: &str,
    ) -> Result<Option<T>, Error> {
        let asking = self.answer(what, query);
        let answered = self
            .deps
            .clock
            .timeout(self.deps.patience.answer, asking)
            .await;
        let late = |late| unavailable(format_args!("no answer from monitoring: {late}"));
        let (status, body) = answered.map_err(late)??;
        match status {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => return Ok(None),
            _ => return Err(unavailable(format_args!("monitoring answers {status}"))),
        }
        let read = serde_json::from_slice(&body);
        let read = read.map_err(|error| {
            Error::Corrupt(format!(
                "what monitoring says of {what} cannot be read: {error}"
            ))
        })?;
        Ok(Some(read))
    }

    async fn answer(&self, what: &str, query: &str) -> Result<(StatusCode, Bytes), Error> {
        let place = &self.place;
        let scheme = if place.tls.is_some() { "https" } else { "http" };
        let host = match place.host.contains(':') {
            true => format!("[{}]", place.host),
            false => place.host.clone(),
        };
        let uri = format!("{scheme}://{host}:{}/streaming/{what}?{query}", place.port);
        let request = Request::get(uri).body(Full::default());
        let request = request.map_err(|error| Error::Invalid(error.to_string()))?;
        let stream = self.deps.connect.connect(place).await;
        let stream = stream
            .map_err(|error| unavailable(format_args!("monitoring cannot be reached: {error}")))?;
        let answer = ask_once(&self.deps.tasks, place, stream, request).await;
        let answer = answer.map_err(unavailable)?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX)
            .collect()
            .await;
        let body = body.map_err(|error| unavailable(format_args!("monitoring: {error}")))?;
        Ok((status, body.to_bytes()))
    }
}

fn unavailable(what: impl std::fmt::Display) -> Error {
    Error::Unavailable(what.to_string())
}

fn not_there() -> Error {
    Error::Invalid("what was asked is no NATS Streaming server's monitoring".to_owned())
}

/// The numbers of a channel and its subscriptions, if they can be true.
pub(super) fn counted(channelz: Channelz) -> Result<(Channel, Vec<Subscription>), Error> {
    let channel = Channel {
        name: channelz.name,
        // A channel that never had an event begins at 0.
        first: match channelz.msgs {
            0 => channelz.last_seq.saturating_add(1),
            _ => channelz.first_seq,
        },
        high_water: channelz.last_seq,
        events: channelz.msgs,
        bytes: channelz.bytes,
    };
    let corrupt =
        |contradiction: crate::counters::Contradiction| Error::Corrupt(contradiction.to_string());
    channel.check().map_err(corrupt)?;
    let mut members = Vec::new();
    for subscriptionz in channelz.subscriptions {
        let member = subscription(&channel, subscriptionz)?;
        member.check(&channel).map_err(corrupt)?;
        members.push(member);
    }
    Ok((channel, united(members)))
}

fn subscription(channel: &Channel, found: Subscriptionz) -> Result<Subscription, Error> {
    let group = Some(found.queue_name).filter(|name| !name.is_empty());
    let (client, durable, group) = match (group, found.is_durable) {
        // The name of a durable group is in front of the group's.
        (Some(name), true) => match name.split_once(':') {
            Some((durable, group)) => (None, durable.to_owned(), Some(group.to_owned())),
            None => {
                return Err(Error::Corrupt(format!(
                    "{name} is no name of a durable group"
                )));
            }
        },
        (group, false) => (Some(found.client_id), found.inbox, group),
        (None, true) => (Some(found.client_id), found.durable_name, None),
    };
    let last_sent = found.last_sent;
    let gone = channel.first.saturating_sub(1).saturating_sub(last_sent);
    let unsent = channel
        .high_water
        .saturating_sub(last_sent)
        .saturating_sub(gone);
    Ok(Subscription {
        id: SubscriptionId {
            channel: channel.name.clone(),
            client,
            durable,
            group,
        },
        is_durable: found.is_durable,
        is_attached: !found.is_offline,
        // More outstanding than sent gives a floor that does not fit, which the check finds.
        ack_floor: AckFloor::AtMost(last_sent.saturating_sub(found.pending_count)),
        last_sent,
        outstanding: found.pending_count,
        unsent,
        expired: gone,
    })
}

#[cfg(test)]
mod tests;
