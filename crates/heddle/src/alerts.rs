//! Which alerts fire, without a Prometheus: the rules that `heddle export alerts` prints, evaluated on what `/metrics` says.
//!
//! ```text
//!   every half minute:  numbers ──aside──> AlertWatch (heddle-api) ──> what is told at GET /heddle/v1/alerts
//!                                                                └──> changes, to a webhook (`webhook`)
//! ```
//! Nothing of it is kept over a restart: an alert that holds is pending again until it has held for as long as its rule says.

#[cfg(test)]
mod tests;
pub(crate) mod webhook;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Extension, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use heddle_api::access::Access;
use heddle_api::health::alerts::told::{AlertList, ToldAlert};
use heddle_api::health::alerts::watch::AlertWatch;
use heddle_rt::{Clock, OnError, Tasks};
use parking_lot::Mutex;

use self::webhook::AlertWebhook;
use crate::bundles::axum_json;
use crate::config::Config;
use crate::control::Control;
use crate::wire::World;

/// How often the numbers are looked at.
const EVERY: Duration = Duration::from_secs(30);

/// What was found at the last look.
#[derive(Clone, Debug, Default)]
pub(crate) struct AlertsApi {
    told: Arc<Mutex<Arc<AlertList>>>,
}

impl AlertsApi {
    /// The router, without the prefix.
    pub(crate) fn router(self) -> Router {
        Router::new().route("/alerts", get(list)).with_state(self)
    }

    fn tell(&self, list: AlertList) {
        *self.told.lock() = Arc::new(list);
    }
}

async fn list(State(alerts): State<AlertsApi>, Extension(access): Extension<Access>) -> Response {
    let told = Arc::clone(&alerts.told.lock());
    axum_json(&told.within(&access)).into_response()
}

/// Begins to look, and to tell whom the configuration names.
pub(crate) fn start(
    control: Control,
    tasks: &Tasks,
    config: &Config,
    world: &World,
) -> anyhow::Result<()> {
    let open = |url: &String| {
        let mesh = control.mesh.clone();
        AlertWebhook::open(url, &config.egress, &config.data_dir, world, tasks, mesh)
    };
    let webhook = config.alert_webhook.as_ref().map(open).transpose()?;
    let looking = run(control, webhook);
    tasks.spawn("alerts", OnError::Report, looking);
    Ok(())
}

/// Looks again and again, until the process ends.
async fn run(control: Control, mut webhook: Option<AlertWebhook>) {
    let clock = control.health.clock.clone();
    let mut known = None;
    loop {
        let watch = known.take().map_or_else(AlertWatch::new, Ok);
        let mut watch = match watch {
            Ok(watch) => watch,
            Err(fault) => {
                tracing::error!(%fault, "a rule for alerts is not understood, so none is evaluated");
                return;
            }
        };
        let (numbers, at) = (control.clone(), clock.monotonic());
        // Long texts are made and read where nothing waits for it.
        let looked = control.mesh.aside(move |_| {
            watch.look(at, &numbers.numbers_text());
            Ok(watch)
        });
        match looked.await {
            Ok(watch) => {
                let list = told(&watch, &clock);
                known = Some(watch);
                control.alerts.tell(list.clone());
                if let Some(webhook) = &mut webhook {
                    webhook.look(&list).await;
                }
            }
            // What was seen is lost with the look; it begins anew. The last one fails because the mesh closes.
            Err(error) => tracing::debug!(%error, "alerts could not be looked at"),
        }
        clock.sleep(EVERY).await;
    }
}

/// In the order in which somebody should look.
fn told(watch: &AlertWatch, clock: &Clock) -> AlertList {
    let (now, monotonic) = (clock.now(), clock.monotonic());
    let held = watch.held();
    let mut items: Vec<ToldAlert> = held
        .map(|held| ToldAlert::of(&held, monotonic.saturating_sub(held.since), now))
        .collect();
    // The table has the most urgent first.
    items.sort_by_key(|alert| alert.state);
    AlertList {
        looked_at: Some(now),
        items,
        left_out: watch.left_out(),
    }
}
