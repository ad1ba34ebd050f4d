//! What a broker offers to be tried on, and the steps that most rules take.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use heddle_rt::net::percent_encoded;
use heddle_rt::{Chance, Clock};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::wire::{Broker, BrokerRequest, BrokerResponse};
use crate::{Settings, is_unreachable};

/// How long an operation may take before a rule gives up. Nothing succeeds by waiting this long.
const PATIENCE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(100);

/// At most so many plans are looked at.
const PLANS_MAX: usize = 12;

/// A plan, and what was found out about it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    pub(crate) service: String,
    pub(crate) id: String,
    /// The whole entry of the catalog, the offering's defaults filled in.
    pub(crate) facts: Value,
    /// Instances are only made for platforms that ask again.
    pub(crate) is_patient: bool,
}

impl Plan {
    pub(crate) fn says(&self, field: &str) -> bool {
        self.facts[field] == true
    }
}

/// What a rule needs the catalog to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlanRequirement {
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
pub(crate) struct CheckSession {
    pub(crate) broker: Broker,
    clock: Clock,
    chance: Chance,
    namespace: String,
    pub(crate) missing_version: u16,
    pub(crate) plans: Vec<Plan>,
    /// What was asked for, whatever came of it: instances, and bindings of them.
    made: Mutex<Vec<Leftover>>,
}

/// Something to take away again.
#[derive(Debug, Clone, PartialEq)]
struct Leftover {
    instance: String,
    binding: Option<String>,
    plan: Plan,
}

impl CheckSession {
    pub(crate) fn new(broker: Broker, clock: Clock, chance: Chance, settings: &Settings) -> Self {
        Self {
            broker,
            clock,
            chance,
            namespace: settings.namespace.clone(),
            missing_version: settings.missing_version,
            plans: Vec::new(),
            made: Mutex::default(),
        }
    }

    /// Reads the catalog and tries its plans.
    pub(crate) async fn explore(&mut self) -> Result<()> {
        let catalog = self.broker.call("GET", "/catalog").send().await?;
        let catalog = catalog.is(&[200]).context("cannot read the catalog")?;
        for service in catalog.body["services"].as_array().into_iter().flatten() {
            for plan in service["plans"].as_array().into_iter().flatten() {
                if self.plans.len() < PLANS_MAX {
                    let plan = self.look_at(service, plan).await?;
                    self.plans.push(plan);
                }
            }
        }
        Ok(())
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

    /// What is missing for a rule, if anything.
    pub(crate) fn lacks(&self, need: PlanRequirement) -> Option<&'static str> {
        let any = |of: fn(&Plan) -> bool| self.plans.iter().any(of);
        let (found, what) = match need {
            PlanRequirement::Nothing => (true, ""),
            PlanRequirement::Plan => (any(|_| true), "at all"),
            PlanRequirement::PatientPlan => (any(|plan| plan.is_patient), "that is asynchronous"),
            PlanRequirement::BindablePlan => {
                (any(|plan| plan.says("bindable")), "that can be bound")
            }
            PlanRequirement::UnbindablePlan => {
                (any(|plan| !plan.says("bindable")), "that cannot be bound")
            }
            PlanRequirement::RotatablePlan => (
                any(|plan| plan.says("binding_rotatable")),
                "whose bindings rotate",
            ),
            PlanRequirement::RigidPlan => (
                any(|plan| plan.says("bindable") && !plan.says("binding_rotatable")),
                "whose bindings do not rotate",
            ),
            PlanRequirement::TwoOfferings => (
                self.plans
                    .iter()
                    .any(|plan| plan.service != self.plans[0].service),
                "of a second offering",
            ),
            PlanRequirement::PlanWithSchema => (any(has_schema), "with a schema"),
        };
        (!found).then_some(what)
    }

    /// The plan that a rule asked for.
    pub(crate) fn plan(&self, of: fn(&Plan) -> bool) -> Result<&Plan> {
        self.plans
            .iter()
            .find(|plan| of(plan))
            .context("the catalog has no such plan")
    }

    pub(crate) fn any_plan(&self) -> Result<&Plan> {
        self.plan(|_| true)
    }

    /// An id that nobody has used.
    pub(crate) fn fresh(&self, about: &str) -> String {
        format!("check-{about}-{}", self.chance.suffix(10))
    }

    pub(crate) fn provision_body(&self, plan: &Plan) -> Value {
        json!({
            "service_id": plan.service, "plan_id": plan.id,
            "organization_guid": "check-org", "space_guid": "check-space",
            "context": {"platform": "check", "namespace": self.namespace},
        })
    }

    pub(crate) fn bind_body(&self, plan: &Plan) -> Value {
        json!({
            "service_id": plan.service, "plan_id": plan.id,
            "bind_resource": {"app_guid": "check-app"},
            "context": {"platform": "check", "namespace": self.namespace},
        })
    }

    pub(crate) fn put(&self, id: &str, plan: &Plan) -> BrokerRequest<'_> {
        self.remember(id, None, plan);
        let call = self.broker.call("PUT", &instance(id));
        call.json(&self.provision_body(plan))
    }

    pub(crate) fn delete(&self, id: &str, plan: &Plan) -> BrokerRequest<'_> {
        let call = self.broker.call("DELETE", &instance(id));
        call.query("service_id", &plan.service)
            .query("plan_id", &plan.id)
    }

    pub(crate) fn get(&self, id: &str) -> BrokerRequest<'_> {
        self.broker.call("GET", &instance(id))
    }

    pub(crate) fn poll(&self, id: &str) -> BrokerRequest<'_> {
        self.broker
            .call("GET", &format!("{}/last_operation", instance(id)))
    }

    pub(crate) fn bind(&self, id: &str, binding: &str, plan: &Plan) -> BrokerRequest<'_> {
        self.remember(id, Some(binding), plan);
        let call = self.broker.call("PUT", &bound(id, binding));
        call.json(&self.bind_body(plan))
    }

    pub(crate) fn unbind(&self, id: &str, binding: &str, plan: &Plan) -> BrokerRequest<'_> {
        let call = self.broker.call("DELETE", &bound(id, binding));
        call.query("service_id", &plan.service)
            .query("plan_id", &plan.id)
    }

    pub(crate) fn binding(&self, id: &str, binding: &str) -> BrokerRequest<'_> {
        self.broker.call("GET", &bound(id, binding))
    }

    fn remember(&self, instance: &str, binding: Option<&str>, plan: &Plan) {
        let made = Leftover {
            instance: instance.to_owned(),
            binding: binding.map(str::to_owned),
            plan: plan.clone(),
        };
        let mut known = self.made.lock();
        if !known.contains(&made) {
            known.push(made);
        }
    }

    /// Takes away whatever rules have left, bindings first, and says what would not go. Most of it is gone already.
    pub(crate) async fn clean_up(&self) -> Vec<String> {
        let mut left = std::mem::take(&mut *self.made.lock());
        left.sort_by_key(|made| made.binding.is_none());
        let mut stuck = Vec::new();
        let mut gone_away = None;
        for made in left {
            let Leftover {
                instance,
                binding,
                plan,
            } = &made;
            let removed = match (binding, &gone_away) {
                // Whoever does not answer once will not answer hundreds of times, and each may take a minute.
                (_, Some(why)) => Err(anyhow!("not tried: {why}")),
                (Some(binding), None) => self.release(instance, binding, plan).await,
                (None, None) => self.remove(instance, plan).await,
            };
            if let Err(error) = removed {
                let what = match binding {
                    Some(binding) => format!("binding {binding} of {instance}"),
                    None => format!("instance {instance}"),
                };
                stuck.push(format!("{what}: {error:#}"));
                gone_away = gone_away.or_else(|| is_unreachable(&error).then(|| error.to_string()));
            }
        }
        stuck
    }

    /// Removes a binding and waits for it.
    async fn release(&self, id: &str, binding: &str, plan: &Plan) -> Result<()> {
        let call = self.unbind(id, binding, plan).patient();
        let got = call.gets(&[200, 202, 404, 410]).await?;
        if got.status == 202 {
            self.binding_succeeded(id, binding).await?;
        }
        Ok(())
    }

    /// An instance that is ready.
    pub(crate) async fn made(&self, about: &str, plan: &Plan) -> Result<String> {
        let id = self.fresh(about);
        let got = self.put(&id, plan).patient().gets(&[200, 201, 202]).await?;
        self.succeeded(&id, &got)
            .await
            .with_context(|| format!("cannot provision {id}"))?;
        Ok(id)
    }

    /// A binding that is ready, and its body.
    pub(crate) async fn bound(&self, id: &str, plan: &Plan) -> Result<(String, Value)> {
        let binding = self.fresh("binding");
        let got = self
            .bind(id, &binding, plan)
            .patient()
            .gets(&[200, 201, 202])
            .await?;
        if got.status != 202 {
            return Ok((binding, got.body));
        }
        self.binding_succeeded(id, &binding).await?;
        let got = self.binding(id, &binding).gets(&[200]).await?;
        Ok((binding, got.body))
    }

    /// Removes an instance and waits for it.
    pub(crate) async fn remove(&self, id: &str, plan: &Plan) -> Result<()> {
        let got = self
            .delete(id, plan)
            .patient()
            .gets(&[200, 202, 410])
            .await?;
        if got.status == 202 {
            self.ends(|| self.poll(id), &["succeeded"])
                .await
                .with_context(|| format!("cannot remove {id}"))?;
        }
        Ok(())
    }

    /// A removal must name service and plan, both of them.
    pub(crate) async fn needs_both_ids(&self, path: &str, plan: &Plan) -> Result<()> {
        let call = || self.broker.call("DELETE", path).patient();
        let (service, id) = (("service_id", &plan.service), ("plan_id", &plan.id));
        for call in [
            call(),
            call().query(service.0, service.1),
            call().query(id.0, id.1),
        ] {
            call.gets(&[400]).await?;
        }
        Ok(())
    }

    /// Waits for an operation that was accepted; anything else is done already.
    pub(crate) async fn succeeded(&self, id: &str, accepted: &BrokerResponse) -> Result<()> {
        if accepted.status == 202 {
            self.ends(|| self.poll(id), &["succeeded"]).await?;
        }
        Ok(())
    }

    /// Waits for the operation of a binding.
    pub(crate) async fn binding_succeeded(&self, id: &str, binding: &str) -> Result<()> {
        let path = format!("{}/last_operation", bound(id, binding));
        self.ends(|| self.broker.call("GET", &path), &["succeeded"])
            .await
    }

    /// Asks until an operation has ended, and how; 410 is a removal's way to say that it has.
    pub(crate) async fn ends<'a>(
        &'a self,
        ask: impl Fn() -> BrokerRequest<'a>,
        expected: &[&str],
    ) -> Result<()> {
        let started = self.clock.monotonic();
        loop {
            let got = ask().gets(&[200, 410]).await?;
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
            if self.clock.monotonic().saturating_sub(started) > PATIENCE {
                bail!("the operation is still in progress: {}", got.body);
            }
            self.clock.sleep(POLL).await;
        }
    }
}

pub(crate) fn has_schema(plan: &Plan) -> bool {
    let schema = &plan.facts["schemas"]["service_instance"]["create"]["parameters"];
    schema["required"]
        .as_array()
        .is_some_and(|required| !required.is_empty())
        || schema["additionalProperties"] == false
}

pub(crate) fn instance(id: &str) -> String {
    format!("/service_instances/{}", percent_encoded(id))
}

pub(crate) fn bound(id: &str, binding: &str) -> String {
    format!(
        "{}/service_bindings/{}",
        instance(id),
        percent_encoded(binding)
    )
}
