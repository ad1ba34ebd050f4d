//! Consistent paging without a multi-version store: the rest of a list is kept, by pointer, under a token.
//!
//! A page source costs one pointer per object, is dropped after a few minutes, and there are only so many; a
//! client that comes too late is told 410 and lists again, exactly as with a compacted etcd.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use heddle_rt::Clock;
use heddle_store::{Object, ResourceVersion};
use parking_lot::Mutex;

use crate::status::{Result, StatusError};

/// kube-apiserver compacts after five minutes; a client that pages slower must list again there too.
const PAGE_SECONDS_MAX: u64 = 300;
/// Each keeps the objects of its list alive, old versions included.
const SOURCE_COUNT_MAX: usize = 32;

#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub version: ResourceVersion,
    pub items: Arc<[Arc<Object>]>,
    /// What the list was narrowed to: a token is good only for the list it came from.
    pub scope: String,
}

#[derive(Debug)]
pub(crate) struct Pages {
    clock: Clock,
    sources: Mutex<Sources>,
}

#[derive(Debug, Default)]
struct Sources {
    next: u64,
    by_id: HashMap<u64, (Source, Duration)>,
}

impl Pages {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            sources: Mutex::default(),
        }
    }

    pub(crate) fn keep(&self, source: Source) -> u64 {
        let now = self.clock.monotonic();
        let mut sources = self.sources.lock();
        sources.by_id.retain(|_, (_, until)| *until > now);
        if sources.by_id.len() >= SOURCE_COUNT_MAX {
            let oldest = sources
                .by_id
                .iter()
                .min_by_key(|(_, (_, until))| *until)
                .map(|(id, _)| *id);
            oldest.map(|id| sources.by_id.remove(&id));
        }
        sources.next += 1;
        let id = sources.next;
        sources
            .by_id
            .insert(id, (source, now + Duration::from_secs(PAGE_SECONDS_MAX)));
        id
    }

    /// The source behind a token, and the position of the next page in it.
    pub(crate) fn resume(&self, token: &str, scope: &str) -> Result<(u64, Source, usize)> {
        let (id, version, offset) = decode(token).ok_or_else(|| {
            StatusError::bad_request("continue key is not valid: it was not issued by this server")
        })?;
        let gone = || {
            StatusError::expired(
                "The provided continue parameter is too old to display a consistent list result. \
                 You must start a new list without the continue parameter.",
            )
        };
        let now = self.clock.monotonic();
        let sources = self.sources.lock();
        let (source, until) = sources.by_id.get(&id).ok_or_else(gone)?;
        // Ids start anew with the process; the version tells an old token from a new source with the same id.
        if *until <= now || source.version != version || offset > source.items.len() {
            return Err(gone());
        }
        if source.scope != scope {
            return Err(StatusError::bad_request(
                "continue key is not valid: it belongs to a different list",
            ));
        }
        Ok((id, source.clone(), offset))
    }

    pub(crate) fn forget(&self, id: u64) {
        self.sources.lock().by_id.remove(&id);
    }
}

pub(crate) fn token(id: u64, version: ResourceVersion, offset: usize) -> String {
    URL_SAFE_NO_PAD.encode(format!("{id}.{version}.{offset}"))
}

fn decode(token: &str) -> Option<(u64, ResourceVersion, usize)> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
    let mut parts = text.splitn(3, '.');
    Some((
        parts.next()?.parse().ok()?,
        parts.next()?.parse().ok()?,
        parts.next()?.parse().ok()?,
    ))
}
