//! What a broker offers to be tried on, and the steps that most checks take.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::wire::{Broker, Call, Got, encoded};
use crate::wire::World;

/// How long an operation may take before a check gives up. Nothing succeeds by waiting this long.
const PATIENCE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(100);

/// At most so many plans are looked at.
const PLANS_MAX: usize = 12;

/// A plan, and what was found out about it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    pub(super) service: String,
    pub(super) id: String,
    /// The whole entry of the catalog, the offering's defaults filled in.
    pub(super) facts: Value,
    /// Instances are only made for platforms that ask again.
    pub(super) is_patient: bool,
}

impl Plan {
    pub(super) fn says(&self, field: &str) -> bool {
        self.facts[field] == true
    }
}

/// What a check needs the catalog to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Nothing,
    Plan,
    PatientPlan,
    BindablePlan,
    UnbindablePlan,
    RotatablePlan,
    RigidPlan,
    TwoOfferings,
    PlanWithSchema,
}

/// The broker with what is known about it.
#[derive(Debug)]
pub(super) struct Lab {
    pub(super) broker: Broker,
    world: World,
    namespace: String,
    pub(super) missing_version: u16,
    pub(super) plans: Vec<Plan>,
    /// What was asked for, whatever came of it: instances, and bindings of them.
    made: Mutex<Vec<Made>>,
}

/// Something to take away again.
#[derive(Debug, Clone, PartialEq)]
struct Made {
    instance: String,
    binding: Option<String>,
    plan: Plan,
}

impl Lab {
    pub(super) async fn open(
        broker: Broker,
        world: World,
        namespace: &str,
        missing_version: u16,
    ) -> Result<Self> {
        let mut lab = Self {
            broker,
            world,
            namespace: namespace.to_owned(),
            missing_version,
            plans: Vec::new(),
            made: Mutex::default(),
        };
        let catalog = lab.broker.call("GET", "/catalog").send().await?;
        let catalog = catalog.is(&[200]).context("cannot read the catalog")?;
        for service in catalog.body["services"].as_array().into_iter().flatten() {
            for plan in service["plans"].as_array().into_iter().flatten() {
                if lab.plans.len() < PLANS_MAX {
                    let plan = lab.look_at(service, plan).await?;
                    lab.plans.push(plan);
                }
            }
        }
        Ok(lab)
    }

    /// Only trying tells whether a platform may wait.
    async fn look_at(&self, service: &Value, plan: &Value) -> Result<Plan> {
        let id = |value: &Value| value["id"].as_str().unwrap_or_default().to_owned();
        let mut facts = plan.clone();
        for field in ["bindable", "plan_updateable", "allow_context_updates"] {
            if facts.get(field).is_none() {
                facts[field] = service[field].clone();
            }
        }
        let mut found = Plan {
            service: id(service),
            id: id(plan),
            facts,
            is_patient: false,
        };
        let instance = self.fresh("probe");
        let got = self.put(&instance, &found).send().await?;
        found.is_patient = got.status == 422 && got.body["error"] == "AsyncRequired";
        if !found.is_patient {
            self.remove(&instance, &found).await?;
        }
        Ok(found)
    }

    /// What is missing for a check, if anything.
    pub(super) fn lacks(&self, need: Need) -> Option<&'static str> {
        let any = |of: fn(&Plan) -> bool| self.plans.iter().any(of);
        let (found, what) = match need {
            Need::Nothing => (true, ""),
            Need::Plan => (any(|_| true), "at all"),
            Need::PatientPlan => (any(|plan| plan.is_patient), "that is asynchronous"),
            Need::BindablePlan => (any(|plan| plan.says("bindable")), "that can be bound"),
            Need::UnbindablePlan => (any(|plan| !plan.says("bindable")), "that cannot be bound"),
            Need::RotatablePlan => (
                any(|plan| plan.says("binding_rotatable")),
                "whose bindings rotate",
            ),
            Need::RigidPlan => (
                any(|plan| plan.says("bindable") && !plan.says("binding_rotatable")),
                "whose bindings do not rotate",
            ),
            Need::TwoOfferings => (
                self.plans
                    .iter()
                    .any(|plan| plan.service != self.plans[0].service),
                "of a second offering",
            ),
            Need::PlanWithSchema => (any(has_schema), "with a schema"),
        };
        (!found).then_some(what)
    }

    /// The plan that a check asked for.
    pub(super) fn plan(&self, of: fn(&Plan) -> bool) -> Result<&Plan> {
        self.plans
            .iter()
            .find(|plan| of(plan))
            .context("the catalog has no such plan")
    }

    pub(super) fn any_plan(&self) -> Result<&Plan> {
        self.plan(|_| true)
    }

    /// An id that nobody has used.
    pub(super) fn fresh(&self, about: &str) -> String {
        format!("check-{about}-{}", self.world.chance.suffix(10))
    }

    pub(super) fn provision_body(&self, plan: &Plan) -> Value {
        json!({
            "service_id": plan.service, "plan_id": plan.id,
            "organization_guid": "check-org", "space_guid": "check-space",
            "context": {"platform": "check", "namespace": self.namespace},
        })
    }

    pub(super) fn bind_body(&self, plan: &Plan) -> Value {
        json!({
            "service_id": plan.service, "plan_id": plan.id,
            "bind_resource": {"app_guid": "check-app"},
            "context": {"platform": "check", "namespace": self.namespace},
        })
    }

    pub(super) fn put(&self, id: &str, plan: &Plan) -> Call<'_> {
        self.remember(id, None, plan);
        let call = self.broker.call("PUT", &instance(id));
        call.json(&self.provision_body(plan))
    }

    pub(super) fn delete(&self, id: &str, plan: &Plan) -> Call<'_> {
        let call = self.broker.call("DELETE", &instance(id));
        call.query("service_id", &plan.service)
            .query("plan_id", &plan.id)
    }

    pub(super) fn get(&self, id: &str) -> Call<'_> {
        self.broker.call("GET", &instance(id))
    }

    pub(super) fn poll(&self, id: &str) -> Call<'_> {
        self.broker
            .call("GET", &format!("{}/last_operation", instance(id)))
    }

    pub(super) fn bind(&self, id: &str, binding: &str, plan: &Plan) -> Call<'_> {
        self.remember(id, Some(binding), plan);
        let call = self.broker.call("PUT", &bound(id, binding));
        call.json(&self.bind_body(plan))
    }

    pub(super) fn unbind(&self, id: &str, binding: &str, plan: &Plan) -> Call<'_> {
        let call = self.broker.call("DELETE", &bound(id, binding));
        call.query("service_id", &plan.service)
            .query("plan_id", &plan.id)
    }

    pub(super) fn binding(&self, id: &str, binding: &str) -> Call<'_> {
        self.broker.call("GET", &bound(id, binding))
    }

    fn remember(&self, instance: &str, binding: Option<&str>, plan: &Plan) {
        let made = Made {
            instance: instance.to_owned(),
            binding: binding.map(str::to_owned),
            plan: plan.clone(),
        };
        let mut known = self.made.lock();
        if !known.contains(&made) {
            known.push(made);
        }
    }

    /// Takes away whatever checks have left, bindings first, and says what would not go. Most of it is gone already.
    pub(super) async fn clean_up(&self) -> Vec<String> {
        let mut left = std::mem::take(&mut *self.made.lock());
        left.sort_by_key(|made| made.binding.is_none());
        let mut stuck = Vec::new();
        for made in left {
            let Made {
                instance,
                binding,
                plan,
            } = &made;
            let gone = match binding {
                Some(binding) => self.release(instance, binding, plan).await,
                None => self.remove(instance, plan).await,
            };
            stuck.extend(gone.err().map(|error| format!("{instance}: {error:#}")));
        }
        stuck
    }

    /// Removes a binding and waits for it.
    async fn release(&self, id: &str, binding: &str, plan: &Plan) -> Result<()> {
        let got = self.unbind(id, binding, plan).patient().send().await?;
        let got = got.is(&[200, 202, 404, 410])?;
        if got.status == 202 {
            let path = format!("{}/last_operation", bound(id, binding));
            self.ends(|| self.broker.call("GET", &path), &["succeeded"])
                .await?;
        }
        Ok(())
    }

    /// An instance that is ready.
    pub(super) async fn made(&self, about: &str, plan: &Plan) -> Result<String> {
        let id = self.fresh(about);
        let got = self
            .put(&id, plan)
            .patient()
            .send()
            .await?
            .is(&[200, 201, 202])?;
        self.succeeded(&id, &got)
            .await
            .with_context(|| format!("cannot provision {id}"))?;
        Ok(id)
    }

    /// A binding that is ready, and its body.
    pub(super) async fn bound(&self, id: &str, plan: &Plan) -> Result<(String, Value)> {
        let binding = self.fresh("binding");
        let got = self
            .bind(id, &binding, plan)
            .patient()
            .send()
            .await?
            .is(&[200, 201, 202])?;
        if got.status != 202 {
            return Ok((binding, got.body));
        }
        let path = format!("{}/last_operation", bound(id, &binding));
        self.ends(|| self.broker.call("GET", &path), &["succeeded"])
            .await?;
        let got = self.binding(id, &binding).send().await?.is(&[200])?;
        Ok((binding, got.body))
    }

    /// Removes an instance and waits for it.
    pub(super) async fn remove(&self, id: &str, plan: &Plan) -> Result<()> {
        let got = self
            .delete(id, plan)
            .patient()
            .send()
            .await?
            .is(&[200, 202, 410])?;
        if got.status == 202 {
            self.ends(|| self.poll(id), &["succeeded"])
                .await
                .with_context(|| format!("cannot remove {id}"))?;
        }
        Ok(())
    }

    /// Waits for an operation that was accepted; anything else is done already.
    pub(super) async fn succeeded(&self, id: &str, accepted: &Got) -> Result<()> {
        if accepted.status == 202 {
            self.ends(|| self.poll(id), &["succeeded"]).await?;
        }
        Ok(())
    }

    /// Asks until an operation has ended, and how; 410 is a removal's way to say that it has.
    pub(super) async fn ends<'a>(
        &'a self,
        ask: impl Fn() -> Call<'a>,
        expected: &[&str],
    ) -> Result<()> {
        let started = self.world.clock.monotonic();
        loop {
            let got = ask().send().await?.is(&[200, 410])?;
            let state = if got.status == 410 {
                "succeeded"
            } else {
                got.text("state")
            };
            if state != "in progress" {
                ensure!(
                    expected.contains(&state),
                    "the operation ended as {}",
                    got.body
                );
                return Ok(());
            }
            if self.world.clock.monotonic().saturating_sub(started) > PATIENCE {
                bail!("the operation is still in progress: {}", got.body);
            }
            self.world.clock.sleep(POLL).await;
        }
    }
}

pub(super) fn has_schema(plan: &Plan) -> bool {
    let schema = &plan.facts["schemas"]["service_instance"]["create"]["parameters"];
    schema["required"]
        .as_array()
        .is_some_and(|required| !required.is_empty())
        || schema["additionalProperties"] == false
}

pub(super) fn instance(id: &str) -> String {
    format!("/service_instances/{}", encoded(id))
}

pub(super) fn bound(id: &str, binding: &str) -> String {
    format!("{}/service_bindings/{}", instance(id), encoded(binding))
}
