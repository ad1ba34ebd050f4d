//! Who belongs together: the revisions of a bundle, the bundles of an offering.
//!
//! With thousands of bundles, each round of each of them must not look at all the others. So what belongs together is kept by
//! name, as the watches tell it, and looked up.

use std::fmt::Debug;

use heddle_api::{Bundle, BundleRevision};

use crate::Hubs;
use crate::machine::{Ctx, Error};
use crate::references::{Index, Target};
use crate::usage::offering;

/// What is known of kinship. Clones are the same.
#[derive(Clone)]
pub(crate) struct Kin {
    revisions: Index<BundleRevision>,
    bundles: Index<Bundle>,
}

impl Debug for Kin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kin").finish_non_exhaustive()
    }
}

impl Kin {
    /// Follows bundles and revisions from now on. Whoever is woken by them must be connected after this.
    pub(crate) fn new(hubs: &mut Hubs) -> Self {
        let kin = Self {
            revisions: Index::new(),
            bundles: Index::new(),
        };
        let index = kin.revisions.clone();
        (hubs.revisions).listen(move |change| index.update(change, bundle_of));
        let index = kin.bundles.clone();
        (hubs.bundles).listen(move |change| index.update(change, offering_of));
        kin
    }

    /// All revisions of a bundle.
    pub(crate) async fn revisions(
        &self,
        ctx: &Ctx,
        bundle: &str,
    ) -> Result<Vec<BundleRevision>, Error> {
        let bundle = Target::of::<Bundle>("", bundle);
        ctx.known_by(&self.revisions, &bundle, bundle_of).await
    }

    /// All bundles that want to be the offering of an id.
    pub(crate) async fn bundles(&self, ctx: &Ctx, service: &str) -> Result<Vec<Bundle>, Error> {
        ctx.known_by(&self.bundles, &offering(service), offering_of)
            .await
    }
}

fn bundle_of(revision: &BundleRevision) -> Vec<Target> {
    vec![Target::of::<Bundle>("", &revision.spec.bundle)]
}

fn offering_of(bundle: &Bundle) -> Vec<Target> {
    vec![offering(&bundle.spec.service_id)]
}
