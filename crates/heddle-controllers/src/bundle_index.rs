//! An index of bundles: the revisions of a bundle, the bundles of an offering.
//!
//! With thousands of bundles, each reconcile of each of them must not look at all the others. So what belongs together is kept by
//! name, as the watches tell it, and looked up.

use std::fmt::Debug;

use heddle_api::{Bundle, BundleRevision};

use crate::Watches;
use crate::reconcile::{Ctx, Error};
use crate::references::{Index, Target};
use crate::usage::offering;

/// What is known of kinship. Clones are the same.
#[derive(Clone)]
pub(crate) struct BundleIndex {
    revisions: Index<BundleRevision>,
    bundles: Index<Bundle>,
}

impl Debug for BundleIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kin").finish_non_exhaustive()
    }
}

impl BundleIndex {
    /// Follows bundles and revisions from now on. Whoever is woken by them must be connected after this.
    pub(crate) fn new(watches: &mut Watches) -> Self {
        let bundle_index = Self {
            revisions: Index::new(),
            bundles: Index::new(),
        };
        let index = bundle_index.revisions.clone();
        (watches.revisions).on_change(move |change| index.update(change, bundle_of));
        let index = bundle_index.bundles.clone();
        (watches.bundles).on_change(move |change| index.update(change, offering_of));
        bundle_index
    }

    /// All revisions of a bundle.
    pub(crate) async fn revisions(
        &self,
        ctx: &Ctx,
        bundle: &str,
    ) -> Result<Vec<BundleRevision>, Error> {
        let bundle = Target::of::<Bundle>("", bundle);
        ctx.cached_by(&self.revisions, &bundle, bundle_of).await
    }

    /// All bundles that want to be the offering of an id.
    pub(crate) async fn bundles(&self, ctx: &Ctx, service: &str) -> Result<Vec<Bundle>, Error> {
        ctx.cached_by(&self.bundles, &offering(service), offering_of)
            .await
    }
}

fn bundle_of(revision: &BundleRevision) -> Vec<Target> {
    vec![Target::of::<Bundle>("", &revision.spec.bundle)]
}

fn offering_of(bundle: &Bundle) -> Vec<Target> {
    vec![offering(&bundle.spec.service_id)]
}
