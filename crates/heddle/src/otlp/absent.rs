//! A heddle that was built without the export of spans: the same names as `otlp.rs`, and nobody behind them.
//!
//! Whoever asks for it is told how to get it, before anything is started.

use std::sync::Arc;
use std::time::Duration;

use heddle_mesh::Observer;
use heddle_rt::Tasks;

use crate::failure::Failure;
use crate::wire::World;

/// There is none.
#[derive(Clone, Debug)]
pub(crate) enum Exporter {}

/// Whether spans can be sent to `endpoint`.
pub(crate) fn check(endpoint: &str) -> Result<(), Failure> {
    Err(refused(endpoint))
}

fn refused(endpoint: &str) -> Failure {
    Failure::Usage(format!(
        "cannot send spans to {endpoint}: this heddle was built without the feature `otlp`; build it with `cargo build \
         --release --features otlp`, or take the endpoint away (--otlp-endpoint, OTEL_EXPORTER_OTLP_ENDPOINT, \
         telemetry.otlpEndpoint in the configuration)"
    ))
}

impl Exporter {
    pub(crate) fn start(endpoint: &str, _: &World, _: &Tasks) -> anyhow::Result<Self> {
        Err(refused(endpoint).into())
    }

    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        match *self {}
    }

    pub(crate) fn metrics_text(&self) -> String {
        match *self {}
    }

    pub(crate) async fn close(&self, _: Duration) {
        match *self {}
    }
}
