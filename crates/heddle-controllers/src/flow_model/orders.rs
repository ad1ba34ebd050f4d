//! The inputs of a flow in every order: what comes of them is the same.

use heddle_api::well_known::INTEGRATION_NAMESPACE;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::server::NAMESPACE;
use super::{Planted, Server};

/// Everything a flow depends on, each as something that happens once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Namespace,
    Application,
    Mapping,
    Source,
    Channel,
    Flow,
    /// From now on the mesh serves whatever is there.
    Mesh,
}

const INPUTS: [Input; 7] = [
    Input::Namespace,
    Input::Application,
    Input::Mapping,
    Input::Source,
    Input::Channel,
    Input::Flow,
    Input::Mesh,
];

#[derive(Clone, Default)]
struct World {
    server: Server,
    is_meshed: bool,
}

impl World {
    fn take(&mut self, input: Input) {
        let server = &mut self.server;
        let ready = json!({
            "observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}],
        });
        let integration = json!({"name": "shop", "namespace": INTEGRATION_NAMESPACE});
        match input {
            Input::Namespace => {
                let namespace = json!({"metadata": {"name": NAMESPACE}});
                server.namespace = Some(server.born(namespace));
            }
            Input::Application => {
                let service = json!({
                    "id": "a", "name": "a", "displayName": "Orders", "description": "",
                    "providerDisplayName": "", "entries": [{"type": "Events"}],
                });
                let spec = json!({"description": "", "services": [service]});
                let object = json!({"metadata": {"name": "shop"}, "spec": spec});
                server.put(|server| &mut server.applications, object);
            }
            Input::Mapping => {
                let object = json!({"metadata": {"name": "shop"}, "spec": {}});
                server.put(|server| &mut server.mappings, object);
            }
            Input::Source => {
                let spec = json!({"source": "shop"});
                let object = json!({"metadata": integration, "spec": spec, "status": ready});
                server.put(|server| &mut server.sources, object);
            }
            Input::Channel => {
                let object = json!({"metadata": integration, "spec": {}, "status": ready});
                server.put(|server| &mut server.channels, object);
            }
            Input::Flow => {
                let spec = json!({"application": "shop", "serviceID": "a"});
                let object = json!({"metadata": {"name": "flow"}, "spec": spec});
                server.put(|server| &mut server.flows, object);
            }
            Input::Mesh => self.is_meshed = true,
        }
    }

    /// Everybody looks until nobody finds anything to do.
    fn settle(&mut self) {
        loop {
            let mut has_moved = self.serve();
            if self.server.namespace.is_some() {
                let steps = self.server.decide(self.server.look());
                has_moved |= !steps.is_empty();
                for step in steps {
                    let outcome = self.server.carry_out(step, Planted::Nothing);
                    assert!(outcome.is_ok(), "nobody else writes");
                }
            }
            has_moved |= self.server.flow_round("flow");
            if !has_moved {
                return;
            }
        }
    }

    /// The mesh and the controllers of its parts: what is there and could work is ready.
    fn serve(&mut self) -> bool {
        let ready = || json!({"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]});
        let mut has_moved = false;
        if !self.is_meshed {
            return false;
        }
        for broker in self.server.brokers.values_mut() {
            if broker.status.is_none() {
                let mut status = ready();
                status["address"] = json!({"url": "http://mesh.example/broker"});
                broker.status = Some(serde_json::from_value(status).unwrap());
                has_moved = true;
            }
        }
        let is_let_in = !self.server.policies.is_empty() && !self.server.channels.is_empty();
        for link in self.server.links.values_mut() {
            if link.status.is_none() && is_let_in {
                link.status = Some(serde_json::from_value(ready()).unwrap());
                has_moved = true;
            }
        }
        has_moved
    }

    /// Everything that is there, without what tells one run from another.
    fn end(&self) -> Value {
        let server = &self.server;
        let mut end = json!({
            "namespace": server.namespace, "flows": server.flows, "brokers": server.brokers,
            "links": server.links, "policies": server.policies, "activations": server.activations,
        });
        forget(&mut end);
        end
    }
}

fn forget(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| {
                !matches!(
                    name.as_str(),
                    "uid" | "resourceVersion" | "heddle.dev/applied"
                )
            });
            fields.values_mut().for_each(forget);
        }
        Value::Array(items) => items.iter_mut().for_each(forget),
        _ => {}
    }
}

/// Goes through every order of what is left; answers how many there were.
fn every_order(world: &World, left: &[Input], end: &mut Option<Value>) -> usize {
    let mut world = world.clone();
    world.settle();
    if left.is_empty() {
        let found = world.end();
        let expected = end.get_or_insert_with(|| found.clone());
        assert_eq!(found, *expected);
        let flow = &world.server.flows["flow"];
        assert!(
            flow.status.as_ref().unwrap().conditions.is_ready(),
            "{flow:#?}"
        );
        let claims = &world.server.brokers["default"].spec.claims;
        assert_eq!(claims.len(), 1);
        assert_eq!(Some(&claims[0].uid), flow.uid().as_ref());
        return 1;
    }
    let mut count = 0;
    for input in left {
        let mut next = world.clone();
        next.take(*input);
        let rest: Vec<Input> = left.iter().filter(|i| *i != input).copied().collect();
        count += every_order(&next, &rest, end);
    }
    count
}

#[test]
fn the_seven_inputs_of_a_flow_give_the_same_end_in_every_order() {
    let count = every_order(&World::default(), &INPUTS, &mut None);
    assert_eq!(count, 5040);
}
