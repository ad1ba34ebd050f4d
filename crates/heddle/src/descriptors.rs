//! File descriptors: as many as the system allows, and some kept for what must not fail.
//!
//! ```text
//!   limit = reserve (log, journal, store) + control door + events door + deliveries (two shares)
//! ```
//! Connections never take what the disk needs: both doors get a share of what the reserve leaves, so that an event that was
//! accepted can be written and read whatever strangers hold open.

use heddle_mesh::path::delivery::ConnectionLimits;
use heddle_rt::net;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More is of no use, and what is allowed may have to be walked through.
const LIMIT_MAX: u64 = 1 << 20;
/// For segments, snapshots and the database, those of them that are opened for one question, listeners and the runtime.
const RESERVE: u64 = 128;
/// Fewer connections than this, at a door or to subscribers, are not worth starting for.
const SHARE_MIN: u64 = 32;
/// Deliveries get two shares: two doors, one of them for people.
const SHARES: u64 = 4;

/// How many connections there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    /// At each door.
    pub(crate) door: usize,
    /// To all destinations.
    pub(crate) outgoing: usize,
    /// To one destination.
    pub(crate) destination: usize,
}

/// Fewer descriptors than a server needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this process may have {limit} files and connections open, and heddle needs {needed}: raise the limit \
     (`ulimit -n` in a shell, LimitNOFILE= of a systemd unit, --ulimit nofile= of a container)"
)]
pub(crate) struct TooFew {
    limit: u64,
    needed: u64,
}

/// Takes as many descriptors as the system lets us have, and divides them.
pub(crate) fn take() -> Result<Shares, TooFew> {
    let shares = divide(raise())?;
    tracing::debug!(?shares, "descriptors");
    Ok(shares)
}

/// Raises the soft limit to the hard one; gives what holds then.
fn raise() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.unwrap_or(LIMIT_MAX).min(LIMIT_MAX);
    let now = current.unwrap_or(LIMIT_MAX);
    if now >= wanted {
        return now;
    }
    let raised = Rlimit {
        current: Some(wanted),
        maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => wanted,
        Err(error) => {
            tracing::warn!(%error, limit = now, "the limit of open files could not be raised");
            now
        }
    }
}

fn divide(limit: u64) -> Result<Shares, TooFew> {
    let needed = RESERVE + SHARES * SHARE_MIN;
    if limit < needed {
        return Err(TooFew { limit, needed });
    }
    let share = (limit - RESERVE) / SHARES;
    let at_most = |most: usize, share: u64| usize::try_from(share).map_or(most, |it| it.min(most));
    let outgoing = at_most(ConnectionLimits::default().all_max, 2 * share);
    Ok(Shares {
        door: at_most(net::Limits::default().connections_max, share),
        outgoing,
        destination: outgoing / DESTINATION_PART,
    })
}

/// One destination may hold so many parts of the connections to all, so that a few that stall leave room for others.
const DESTINATION_PART: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_never_take_what_the_disk_needs() {
        for limit in [256, 257, 1024, 4096, 16_384, 20_000, LIMIT_MAX, u64::MAX] {
            let shares = divide(limit).expect("enough");
            let Shares {
                door,
                outgoing,
                destination,
            } = shares;
            let taken = 2 * door as u64 + outgoing as u64;
            assert!(taken + RESERVE <= limit, "{limit}: {taken} are taken");
            assert!(door >= 32 && outgoing >= 64, "{limit}");
            assert!(destination >= 16 && destination < outgoing, "{limit}");
        }
        let plenty = divide(LIMIT_MAX).expect("enough");
        assert_eq!(
            (plenty.door, plenty.outgoing, plenty.destination),
            (4096, 4096, 1024)
        );
    }

    #[test]
    fn too_few_are_refused_with_a_remedy() {
        let refused = divide(255).expect_err("too few").to_string();
        assert!(refused.contains("may have 255"), "{refused}");
        assert!(refused.contains("needs 256"), "{refused}");
        assert!(refused.contains("ulimit -n"), "{refused}");
    }
}
