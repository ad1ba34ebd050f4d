//! How hard to try: the delivery settings of a consumer, read once and then only computed with.
//!
//! ```text
//!   exponential   delay, 2 delay, 4 delay, …      linear   delay, 2 delay, 3 delay, …
//! ```
//! Each pause is at most [`CAP`], gets up to a tenth of itself on top so that a crowd does not come back together, and is
//! never shorter than what the destination asked for, within bounds. Everything here is pure: when a pause begins and
//! what happens after the last one is left to the broker.

use std::time::Duration;

use heddle_api::duck::{BackoffPolicy, DeliveryFormat, DeliverySpec};
use heddle_rt::Chance;
use jiff::{Span, SpanRelativeTo};

/// Repetitions when nothing is said. With the default delay they take 204.6 seconds.
pub const RETRY_DEFAULT: u32 = 10;
/// The first pause when nothing is said.
pub const DELAY_DEFAULT: Duration = Duration::from_millis(200);
/// The longest pause, unless the delay itself is longer. Ten minutes is how late an event may notice that all is well.
pub const CAP: Duration = Duration::from_secs(600);
/// How long one attempt may take when nothing is said.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);
/// The longest `Retry-After` that is honoured when nothing is said.
pub const RETRY_AFTER_MAX_DEFAULT: Duration = Duration::from_secs(3600);

/// Pauses that are told one by one.
const PAUSES_TOLD_MAX: u32 = 32;
/// A pause becomes longer by up to one part in this many.
const JITTER_PART: u32 = 10;

/// The delivery settings of one consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts after the first.
    pub retry_max: u32,
    pub backoff: BackoffPolicy,
    /// The first pause.
    pub delay: Duration,
    /// The longest pause.
    pub cap: Duration,
    /// How long one attempt may take, from connecting to the last byte of the answer.
    pub timeout: Duration,
    /// The longest `Retry-After` that is honoured; zero ignores the header.
    pub retry_after_max: Duration,
    /// The form in which events are sent; `None` keeps theirs.
    pub format: Option<DeliveryFormat>,
}

/// A setting that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("delivery.{field} is {value:?}, which is {reason}")]
pub struct Invalid {
    pub field: &'static str,
    pub value: String,
    pub reason: &'static str,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retry_max: RETRY_DEFAULT,
            backoff: BackoffPolicy::Exponential,
            delay: DELAY_DEFAULT,
            cap: CAP,
            timeout: TIMEOUT_DEFAULT,
            retry_after_max: RETRY_AFTER_MAX_DEFAULT,
            format: None,
        }
    }
}

impl RetryPolicy {
    /// Reads the settings. What is absent has its default, whatever else is set.
    pub fn from_spec(spec: &DeliverySpec) -> Result<Self, Invalid> {
        let defaults = Self::default();
        let delay = read(
            "backoffDelay",
            spec.backoff_delay.as_deref(),
            defaults.delay,
        )?;
        let timeout = read("timeout", spec.timeout.as_deref(), defaults.timeout)?;
        if timeout.is_zero() {
            return Err(Invalid {
                field: "timeout",
                value: spec.timeout.clone().unwrap_or_default(),
                reason: "no time at all",
            });
        }
        let retry_max = match spec.retry {
            // The schema refuses negative numbers; what slipped past it means no repetition.
            Some(retry) => u32::try_from(retry).unwrap_or(0),
            None => defaults.retry_max,
        };
        let retry_after_max = spec.retry_after_max.as_deref();
        Ok(Self {
            retry_max,
            backoff: spec.backoff_policy.unwrap_or(defaults.backoff),
            delay,
            cap: CAP.max(delay),
            timeout,
            retry_after_max: read("retryAfterMax", retry_after_max, defaults.retry_after_max)?,
            format: spec.format,
        })
    }

    /// How long to wait after `failed_attempts` of them (the first failure is 1); `None` gives up.
    #[must_use]
    pub fn pause(
        &self,
        failed_attempts: u32,
        retry_after: Option<Duration>,
        chance: &Chance,
    ) -> Option<Duration> {
        if failed_attempts > self.retry_max {
            return None;
        }
        let pause = self.pause_without_end(failed_attempts, chance);
        let asked = retry_after.unwrap_or_default().min(self.retry_after_max);
        Some(pause.max(asked))
    }

    /// How long to wait when giving up is out of the question.
    #[must_use]
    pub fn pause_without_end(&self, failed_attempts: u32, chance: &Chance) -> Duration {
        let scheduled = self.scheduled(failed_attempts);
        scheduled.saturating_add(chance.jitter(scheduled / JITTER_PART))
    }

    /// The pause after that many failures, without jitter.
    #[must_use]
    pub fn scheduled(&self, failed_attempts: u32) -> Duration {
        let step = failed_attempts.max(1);
        let factor = match self.backoff {
            BackoffPolicy::Linear => u128::from(step),
            BackoffPolicy::Exponential => 1_u128.checked_shl(step - 1).unwrap_or(u128::MAX),
        };
        let nanos = self.delay.as_nanos().saturating_mul(factor);
        of_nanos(nanos.min(self.cap.as_nanos()))
    }

    /// All pauses together, without jitter. A schedule may have two thousand million steps, so they are not all walked.
    fn scheduled_in_all(&self) -> Duration {
        let (delay, cap) = (self.delay.as_nanos(), self.cap.as_nanos());
        let steps = u128::from(self.retry_max);
        if delay == 0 {
            return Duration::ZERO;
        }
        // The pauses that are still growing, and how many nanoseconds they take.
        let (growing, nanos) = match self.backoff {
            BackoffPolicy::Linear => {
                let growing = (cap / delay).min(steps);
                let pairs = growing.saturating_mul(growing + 1) / 2;
                (growing, delay.saturating_mul(pairs))
            }
            BackoffPolicy::Exponential => {
                let growing = u128::from((cap / delay).ilog2() + 1).min(steps);
                (growing, delay.saturating_mul((1 << growing) - 1))
            }
        };
        of_nanos(nanos.saturating_add((steps - growing).saturating_mul(cap)))
    }

    /// The pauses in seconds, without jitter; the first of them if they are many.
    #[must_use]
    pub fn pauses_s(&self) -> Vec<f64> {
        let steps = 1..=self.retry_max.min(PAUSES_TOLD_MAX);
        steps
            .map(|step| self.scheduled(step).as_secs_f64())
            .collect()
    }

    /// The schedule as a sentence for people.
    #[must_use]
    pub fn in_words(&self) -> String {
        let pause = |step| seconds(self.scheduled(step));
        let total = seconds(self.scheduled_in_all());
        let attempts = match self.retry_max {
            0 => return "one attempt, then dead letter".to_owned(),
            1 => return format!("one more attempt after {}, then dead letter", pause(1)),
            2 => format!("{}, {}", pause(1), pause(2)),
            3 => format!("{}, {}, {}", pause(1), pause(2), pause(3)),
            last => format!("{}, {}, … {}", pause(1), pause(2), pause(last)),
        };
        let count = self.retry_max;
        format!("up to {count} more attempts after {attempts} ({total} in all), then dead letter")
    }
}

fn read(field: &'static str, text: Option<&str>, absent: Duration) -> Result<Duration, Invalid> {
    let Some(value) = text else {
        return Ok(absent);
    };
    duration(value).map_err(|reason| Invalid {
        field,
        value: value.to_owned(),
        reason,
    })
}

/// A duration in the ISO 8601 form, in which days have 24 hours; years and months have no length of their own. The error
/// says what it is instead.
pub(crate) fn duration(value: &str) -> Result<Duration, &'static str> {
    const NONE: &str = "not an ISO 8601 duration such as PT0.2S";
    // The parser also takes "5 seconds", which Knative does not.
    if !value.starts_with('P') {
        return Err(NONE);
    }
    let span: Span = value.parse().map_err(|_| NONE)?;
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours());
    let length = length.map_err(|_| "of no fixed length; use days, hours or less")?;
    Duration::try_from(length).map_err(|_| "negative")
}

fn of_nanos(nanos: u128) -> Duration {
    const SECOND: u128 = 1_000_000_000;
    let below = u32::try_from(nanos % SECOND).expect("less than a second");
    u64::try_from(nanos / SECOND).map_or(Duration::MAX, |seconds| Duration::new(seconds, below))
}

/// Seconds with at most three decimals, and none that say nothing.
fn seconds(duration: Duration) -> String {
    let text = format!("{:.3}", duration.as_secs_f64());
    let short = text.trim_end_matches('0').trim_end_matches('.');
    format!("{short} s")
}

#[cfg(test)]
mod tests;
