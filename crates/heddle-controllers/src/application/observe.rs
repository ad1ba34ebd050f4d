//! Observe: the Application and its children, as they are now.

use heddle_api::application::{Application, RejectedService};
use heddle_api::channel::Channel;
use heddle_api::http_source::HTTPSource;
use heddle_api::well_known::{INTEGRATION_NAMESPACE, publisher_secret};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::DynamicObject;

use super::publisher::Token;
use super::{CHANNEL, PUBLISHER, SOURCE};
use crate::reconcile::{Ctx, Error, StepName};

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub application: Application,
    pub source: Option<HTTPSource>,
    pub channel: Option<Channel>,
    /// Services that cannot be offered.
    pub rejected: Vec<RejectedService>,
    pub publisher: Option<Secret>,
    /// What a new Secret would hold.
    pub fresh_token: Token,
    /// Whether there is a mesh, without which no child can become ready.
    pub meshed: bool,
    /// The step that failed in this reconcile, and how.
    pub trouble: Option<(StepName, String)>,
}

pub(super) async fn observe(
    ctx: &Ctx,
    application: Application,
    rejected: Vec<RejectedService>,
) -> Result<World, Error> {
    let name = application.name_any();
    Ok(World {
        source: ctx.find(INTEGRATION_NAMESPACE, &name).await?,
        channel: ctx.find(INTEGRATION_NAMESPACE, &name).await?,
        publisher: ctx
            .find(INTEGRATION_NAMESPACE, &publisher_secret(&name))
            .await?,
        fresh_token: Token::new(&ctx.options.chance),
        application,
        rejected,
        meshed: ctx.plane().is_some(),
        trouble: None,
    })
}

impl World {
    /// The server's answer to a step is the newest there is to know about that child.
    pub(super) fn absorb(&mut self, step_name: StepName, answer: Option<DynamicObject>) {
        match step_name {
            SOURCE => self.source = answer.and_then(|object| object.try_parse().ok()),
            CHANNEL => self.channel = answer.and_then(|object| object.try_parse().ok()),
            PUBLISHER => self.publisher = answer.and_then(|object| object.try_parse().ok()),
            _ => {}
        }
    }
}
