//! A subscriber that is tried once, before there is a Trigger for it.
//!
//! It is asked `OPTIONS` by its exact URL, as its consent would be, and over the connections of deliveries: what the policy
//! for destinations forbids is not connected to. Of the answer no more is told than its status and whether it consents, so
//! that nobody reads by this what they could not read themselves.

use std::time::Duration;

use heddle_api::subscriber_trial::{SubscriberTrial, SubscriberTrialRequest};
use http::HeaderValue;

use super::consent::{REQUEST_ORIGIN, consents};
use super::retry_policy::RetryPolicy;
use super::subscriber_probe::ORIGIN;
use crate::ledger::Error;
use crate::mesh::Mesh;
use crate::routes::{Webhook, is_dns_name};

/// How long it may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// What of a fault is repeated to people.
const SHOWN_CHARS_MAX: usize = 300;

impl Mesh {
    /// Tries a subscriber, and tells how it would be sent events.
    pub async fn try_subscriber(
        &self,
        request: &SubscriberTrialRequest,
    ) -> Result<SubscriberTrial, Error> {
        let policy = RetryPolicy::from_spec(&request.delivery);
        let policy = policy.map_err(|error| Error::Invalid(error.to_string()))?;
        let webhook = request.origin.as_deref().map(webhook).transpose()?;
        let shared = &self.shared;
        let address = shared.courier.address(&request.url, None);
        let address = address.map_err(|error| Error::Invalid(error.to_string()))?;
        let origin = webhook.as_ref().map(|webhook| &webhook.origin);
        let origin = origin.and_then(|origin| HeaderValue::from_str(origin).ok());
        let headers = [(
            REQUEST_ORIGIN.clone(),
            origin.unwrap_or_else(|| ORIGIN.clone()),
        )];
        let _turn = shared.subscriber_probes.turn().await;
        let begun = shared.clock.monotonic();
        let answer = shared.courier.options(&address, &headers, TIMEOUT).await;
        let took = shared.clock.monotonic().saturating_sub(begun);
        let mut trial = SubscriberTrial {
            url: request.url.clone(),
            took_ms: took.as_secs_f64() * 1000.0,
            schedule: policy.in_words(),
            pauses_s: policy.pauses_s(),
            ..SubscriberTrial::default()
        };
        match answer {
            Ok((status, headers)) => {
                trial.reachable = true;
                trial.status = Some(status);
                let said = webhook.map(|webhook| consents(status, &headers, &webhook));
                trial.consents = said.as_ref().map(Result::is_ok);
                trial.consent_lacks = said.and_then(Result::err);
            }
            Err(why) => trial.why = Some(why.chars().take(SHOWN_CHARS_MAX).collect()),
        }
        Ok(trial)
    }
}

fn webhook(origin: &str) -> Result<Webhook, Error> {
    if !is_dns_name(origin) {
        let text =
            format!("the origin is {origin:?}, wanted is a DNS name such as events.example.com");
        return Err(Error::Invalid(text));
    }
    Ok(Webhook {
        origin: origin.to_owned(),
        rate: None,
    })
}
