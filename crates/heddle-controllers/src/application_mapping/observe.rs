//! Observe: the mapping, the Application it names, and the namespace it is in.

use heddle_api::application::Application;
use heddle_api::application_mapping::ApplicationMapping;
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt as _;

use crate::reconcile::{Ctx, Error};

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub mapping: ApplicationMapping,
    pub application: Option<Application>,
    pub namespace_terminating: bool,
}

pub(super) async fn observe(ctx: &Ctx, mapping: ApplicationMapping) -> Result<World, Error> {
    let namespace: Option<Namespace> = ctx
        .cached_global(&mapping.namespace().unwrap_or_default())
        .await?;
    Ok(World {
        application: ctx.cached_global(&mapping.name_any()).await?,
        namespace_terminating: namespace
            .is_none_or(|namespace| namespace.metadata.deletion_timestamp.is_some()),
        mapping,
    })
}
