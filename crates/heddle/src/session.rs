//! Who logged in with a browser, and how long that lasts.
//!
//! A session has two halves: a cookie that no script can read, and a number that no other origin can, which the page sends as
//! `X-Heddle-Session`. Both are known here by digest only, in memory: a restart ends all sessions.
//!
//! What routers find among the extensions of a request (`heddle_api::access`):
//!
//! ```text
//!   both halves, or a bearer token         Access, Visitor::Known
//!   the cookie of a reading session        Access, Visitor::Known     GET and HEAD below /ui only
//!   the cookie alone                       Visitor::CookieOnly        show the frame, and nothing in it
//!   nothing that is good                   Visitor::Nobody            show the login
//! ```
//! A reading session is what the plain form at `POST /ui/login` gives to browsers without script. `GET /ui/login` belongs to the
//! page, as a route of its own, so that the two are merged.
//!
//! A session ends after half an hour in which nothing was asked, after twelve hours, with the token that it was made with, and
//! when somebody logs out. Of more than a thousand, and of more than fifty of one user, the one goes that was idle longest. Asking `GET /heddle/v1/session` is no use
//! of it, so that a page may show how long it lasts; nor is what a page that is left open reads by itself (`door`).

mod attempts;
mod codes;
pub(crate) mod cookie;
pub(crate) mod logins;
pub(crate) mod origin;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use heddle_api::access::Access;
use heddle_apiserver::{Identity, TokenDigest, TokenHolder, digest};
use heddle_rt::{Chance, Clock};
use http::HeaderValue;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use self::attempts::LoginAttempts;
use self::codes::LoginCodes;

/// 256 bits: nobody guesses that.
const SECRET_BYTES: usize = 32;
const IDLE_MAX: Duration = Duration::from_secs(30 * 60);
const LIFE_MAX: Duration = Duration::from_secs(12 * 60 * 60);
const SESSIONS_MAX: usize = 1000;
/// Of one user; the one goes that was idle longest.
const SESSIONS_EACH_MAX: usize = 50;

/// Everybody who is logged in. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct PageSessions(Arc<SessionTable>);

#[derive(Debug)]
struct SessionTable {
    clock: Clock,
    chance: Chance,
    /// Of the listener: cookies are not told apart by port.
    port: u16,
    sessions: Mutex<HashMap<TokenDigest, PageSession>>,
    codes: Mutex<LoginCodes>,
    attempts: Mutex<LoginAttempts>,
}

#[derive(Debug)]
struct PageSession {
    identity: Identity,
    access: Access,
    /// The half that the page keeps; `None` for one that is for reading.
    page: Option<TokenDigest>,
    /// By the monotonic clock.
    used: Duration,
    ends: Duration,
    /// Cancelled at the end; with the token too.
    ended: CancellationToken,
}

impl PageSession {
    fn over_at(&self) -> Duration {
        self.ends.min(self.used.saturating_add(IDLE_MAX))
    }

    fn is_over(&self, now: Duration) -> bool {
        self.ended.is_cancelled() || now >= self.over_at()
    }
}

/// Whoever a session belongs to; travels with their requests.
#[derive(Clone, Debug)]
pub(crate) struct LoggedIn {
    key: TokenDigest,
    pub(crate) identity: Identity,
    pub(crate) access: Access,
    ended: CancellationToken,
}

/// What a request shows of a session.
#[derive(Debug)]
pub(crate) enum ShownSession {
    Nothing,
    Half,
    Reading(LoggedIn),
    Whole(LoggedIn),
}

/// What a session is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionKind {
    /// Everything that its user may do, with both halves.
    Whole,
    /// Reading pages, with the cookie alone.
    Reading,
}

/// The secrets of a new session, which are told once.
#[derive(Debug)]
pub(crate) struct SessionSecrets {
    pub(crate) cookie: String,
    /// Empty for one that is for reading.
    pub(crate) page: String,
    pub(crate) logged_in: LoggedIn,
}

impl PageSessions {
    pub(crate) fn new(clock: Clock, chance: Chance, port: u16) -> Self {
        Self(Arc::new(SessionTable {
            clock,
            chance,
            port,
            sessions: Mutex::default(),
            codes: Mutex::default(),
            attempts: Mutex::default(),
        }))
    }

    /// What the cookie is called.
    pub(crate) fn cookie_name(&self, is_tls: bool) -> String {
        cookie::name(self.0.port, is_tls)
    }

    /// Sets the cookie; an empty value takes it away.
    fn set_cookie(&self, value: &str, is_tls: bool) -> HeaderValue {
        cookie::set(&self.cookie_name(is_tls), value, is_tls)
    }

    /// Logs somebody in. `None` when they have no role here.
    pub(crate) fn begin(&self, holder: &TokenHolder, kind: SessionKind) -> Option<SessionSecrets> {
        let access = holder.identity.access()?;
        let table = &*self.0;
        let now = table.clock.monotonic();
        let mut ends = now.saturating_add(LIFE_MAX);
        if let Some(expires) = holder.expires {
            ends = ends.min(now.saturating_add(self.left(expires)));
        }
        let cookie = table.chance.token(SECRET_BYTES);
        let page = match kind {
            SessionKind::Whole => table.chance.token(SECRET_BYTES),
            SessionKind::Reading => String::new(),
        };
        let key = digest(&cookie);
        let session = PageSession {
            identity: holder.identity.clone(),
            access,
            page: (kind == SessionKind::Whole).then(|| digest(&page)),
            used: now,
            ends,
            ended: holder.ended.child_token(),
        };
        let logged_in = logged_in(key, &session);
        let mut sessions = table.sessions.lock();
        make_room(&mut sessions, now, &session.identity.user);
        sessions.insert(key, session);
        Some(SessionSecrets {
            cookie,
            page,
            logged_in,
        })
    }

    /// Whose session a request shows. Showing it whole is using it.
    pub(crate) fn show(&self, cookies: &[&str], page: Option<&str>) -> ShownSession {
        let now = self.0.clock.monotonic();
        let page = page.map(digest);
        let mut sessions = self.0.sessions.lock();
        let mut shown = ShownSession::Nothing;
        for cookie in cookies {
            let key = digest(cookie);
            let Some(session) = sessions.get_mut(&key) else {
                continue;
            };
            if session.is_over(now) {
                if let Some(over) = sessions.remove(&key) {
                    over.ended.cancel();
                }
                continue;
            }
            match session.page {
                None => {
                    session.used = now;
                    return ShownSession::Reading(logged_in(key, session));
                }
                known if known == page => return ShownSession::Whole(logged_in(key, session)),
                Some(_) => shown = ShownSession::Half,
            }
        }
        shown
    }

    /// Puts the end off, because something was asked.
    pub(crate) fn touch(&self, logged_in: &LoggedIn) {
        let now = self.0.clock.monotonic();
        if let Some(session) = self.0.sessions.lock().get_mut(&logged_in.key) {
            session.used = now;
        }
    }

    /// When it ends if nothing more is asked, and when in any case. `None` when it is over.
    pub(crate) fn ends(&self, logged_in: &LoggedIn) -> Option<(Timestamp, Timestamp)> {
        let clock = &self.0.clock;
        let (now, sessions) = (clock.monotonic(), self.0.sessions.lock());
        let session = sessions.get(&logged_in.key)?;
        let at = |end: Duration| {
            let left = end.saturating_sub(now);
            clock.now().saturating_add(left).unwrap_or(Timestamp::MAX)
        };
        (!session.is_over(now)).then(|| (at(session.over_at()), at(session.ends)))
    }

    /// Logs somebody out.
    pub(crate) fn end(&self, logged_in: &LoggedIn) {
        self.0.sessions.lock().remove(&logged_in.key);
        logged_in.ended.cancel();
    }

    /// Logs out whoever shows these cookies, which is all that a browser without script has.
    /// Says whose session it was, if there was one.
    pub(crate) fn end_shown(&self, cookies: &[&str]) -> Option<LoggedIn> {
        let mut sessions = self.0.sessions.lock();
        let mut ended = None;
        for cookie in cookies {
            let key = digest(cookie);
            if let Some(session) = sessions.remove(&key) {
                session.ended.cancel();
                ended = Some(logged_in(key, &session));
            }
        }
        ended
    }

    /// Returns when a session is over, for whatever reason.
    pub(crate) async fn over(&self, logged_in: &LoggedIn) {
        loop {
            let now = self.0.clock.monotonic();
            let over_at = {
                let sessions = self.0.sessions.lock();
                let session = sessions.get(&logged_in.key);
                session
                    .filter(|session| !session.is_over(now))
                    .map(PageSession::over_at)
            };
            let Some(over_at) = over_at else { return };
            tokio::select! {
                () = logged_in.ended.cancelled() => return,
                () = self.0.clock.sleep(over_at.saturating_sub(now)) => {}
            }
        }
    }

    /// Returns when the time has come; without one, never.
    pub(crate) async fn until(&self, time: Option<Timestamp>) {
        let Some(time) = time else {
            return std::future::pending().await;
        };
        loop {
            let left = self.left(time);
            if left.is_zero() {
                return;
            }
            // The wall clock may be set meanwhile.
            self.0.clock.sleep(left.min(LOOK_EVERY)).await;
        }
    }

    fn left(&self, time: Timestamp) -> Duration {
        let left = time.duration_since(self.0.clock.now());
        Duration::try_from(left).unwrap_or_default()
    }
}

/// How often the wall clock is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(60);

fn logged_in(key: TokenDigest, session: &PageSession) -> LoggedIn {
    LoggedIn {
        key,
        identity: session.identity.clone(),
        access: session.access.clone(),
        ended: session.ended.clone(),
    }
}

/// For one more of a user: removes those that are over, and then the one that was idle longest, of that user if they have many.
fn make_room(sessions: &mut HashMap<TokenDigest, PageSession>, now: Duration, user: &str) {
    let is_own = |session: &PageSession| *session.identity.user == *user;
    let own = |sessions: &HashMap<_, PageSession>| {
        let all = sessions.values();
        all.filter(|one| is_own(one)).count()
    };
    if own(sessions) < SESSIONS_EACH_MAX && sessions.len() < SESSIONS_MAX {
        return;
    }
    sessions.retain(|_, session| !session.is_over(now));
    if own(sessions) >= SESSIONS_EACH_MAX {
        end_idlest(sessions, is_own);
    }
    if sessions.len() >= SESSIONS_MAX {
        end_idlest(sessions, |_| true);
    }
}

fn end_idlest(
    sessions: &mut HashMap<TokenDigest, PageSession>,
    is_meant: impl Fn(&PageSession) -> bool,
) {
    let meant = sessions.iter().filter(|(_, session)| is_meant(session));
    let idle = meant.min_by_key(|(_, session)| session.used);
    if let Some(key) = idle.map(|(key, _)| *key)
        && let Some(gone) = sessions.remove(&key)
    {
        gone.ended.cancel();
    }
}
