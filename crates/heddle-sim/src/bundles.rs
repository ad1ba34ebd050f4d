//! Bundles without images: what registries hold and what actions do is scripted, and everything is counted.

pub mod registry;
pub mod runs;

use futures::future::BoxFuture;
use heddle_api::action::{Run, RunState};
use heddle_api::bundle_source::{Fetch, FetchError, ReadRequest};
use heddle_api::evidence::Reading;
use heddle_controllers::Bundles;
use heddle_rt::Clock;
use serde_json::{Map, Value};

use registry::TestRegistries;
use runs::ScriptedRuns;

/// Scripted registries and scripted runs as one. Where no registry is set up, images are taken to be there.
#[derive(Debug, Clone)]
pub struct TestBundles {
    pub registries: TestRegistries,
    pub runs: ScriptedRuns,
}

impl TestBundles {
    pub fn new(clock: Clock) -> Self {
        Self {
            registries: TestRegistries::new(clock.clone()),
            runs: ScriptedRuns::new(clock),
        }
    }

    /// Who knows about images.
    fn images(&self) -> &dyn Bundles {
        if self.registries.is_empty() {
            &self.runs
        } else {
            &self.registries
        }
    }
}

impl Bundles for TestBundles {
    fn read(&self, request: ReadRequest) -> BoxFuture<'static, Reading> {
        self.images().read(request)
    }

    fn is_kept(&self, manifest_digest: &str) -> bool {
        self.images().is_kept(manifest_digest)
    }

    fn keep(&self, fetch: Fetch) -> BoxFuture<'static, Result<(), FetchError>> {
        self.images().keep(fetch)
    }

    fn keep_only(&self, manifest_digests: Vec<String>) -> BoxFuture<'static, Result<(), String>> {
        self.images().keep_only(manifest_digests)
    }

    fn start(&self, run: Run) -> BoxFuture<'static, Result<(), String>> {
        self.runs.start(run)
    }

    fn look(&self, id: &str) -> BoxFuture<'static, RunState> {
        self.runs.look(id)
    }

    fn credentials(
        &self,
        id: &str,
    ) -> BoxFuture<'static, Result<Option<Map<String, Value>>, String>> {
        self.runs.credentials(id)
    }

    fn cancel(&self, id: &str) -> BoxFuture<'static, Result<(), String>> {
        self.runs.cancel(id)
    }

    fn forget(&self, id: &str) -> BoxFuture<'static, Result<(), String>> {
        self.runs.forget(id)
    }

    fn forget_instance(&self, instance: &str) -> BoxFuture<'static, Result<(), String>> {
        self.runs.forget_instance(instance)
    }

    fn changed(&self, seen: u64) -> BoxFuture<'static, u64> {
        self.runs.changed(seen)
    }
}
