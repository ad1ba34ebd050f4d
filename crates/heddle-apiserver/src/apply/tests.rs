use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::fields::path_text;

fn schema() -> Schema {
    let status = json!({"type": "object", "properties": {"phase": {"type": "string"}}});
    Schema::compile(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer"},
            "colour": {"type": "string"},
            "inner": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}},
            "list": {"type": "array", "items": {"type": "integer"}},
            "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                      "items": {"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}}},
        }},
        "data": {"type": "object", "additionalProperties": {"type": "string"}},
        "status": status,
    }}))
    .unwrap()
}

/// One object and the writes to it, a second apart.
struct World {
    schema: Schema,
    live: Option<Value>,
    second: i64,
}

impl World {
    fn new() -> Self {
        Self {
            schema: schema(),
            live: None,
            second: 0,
        }
    }

    fn now(&mut self) -> Timestamp {
        self.second += 1;
        Timestamp::from_second(self.second).unwrap()
    }

    fn manager(name: &str) -> Manager {
        let (name, subresource) = name
            .split_once('/')
            .map_or((name, None), |(name, sub)| (name, Some(sub.to_owned())));
        Manager {
            name: name.to_owned(),
            api_version: "example.com/v1".to_owned(),
            subresource,
        }
    }

    fn try_apply(&mut self, manager: &str, body: Value, force: bool) -> Result<(), String> {
        let now = self.now();
        let applied = object(body);
        let result = apply(
            self.live.as_ref(),
            &applied,
            &Self::manager(manager),
            force,
            &self.schema,
            now,
        );
        self.live = Some(result.map_err(|error| error.to_string())?);
        Ok(())
    }

    #[track_caller]
    fn apply(&mut self, manager: &str, body: Value) -> &mut Self {
        self.try_apply(manager, body, false).unwrap();
        self
    }

    #[track_caller]
    fn force(&mut self, manager: &str, body: Value) -> &mut Self {
        self.try_apply(manager, body, true).unwrap();
        self
    }

    #[track_caller]
    fn refused(&mut self, manager: &str, body: Value, text: &str) -> &mut Self {
        assert_eq!(self.try_apply(manager, body, false), Err(text.to_owned()));
        self
    }

    /// A write that is no apply: the whole body, with the managed fields it read.
    fn update(&mut self, manager: &str, body: Value) -> &mut Self {
        let mut new = object(body);
        if let Some(given) = self.live.as_ref().and_then(managed_fields) {
            new["metadata"]["managedFields"] = given.clone();
        }
        self.update_as_is(manager, new)
    }

    fn update_as_is(&mut self, manager: &str, mut new: Value) -> &mut Self {
        let now = self.now();
        track_update(
            self.live.as_ref(),
            &mut new,
            &Self::manager(manager),
            &self.schema,
            now,
        );
        self.live = Some(new);
        self
    }

    #[track_caller]
    fn holds(&mut self, body: Value) -> &mut Self {
        assert_eq!(
            without_managed_fields(self.live.as_ref().unwrap()),
            object(body)
        );
        self
    }

    /// Owners with what they own, one line each.
    fn owners(&self) -> Vec<String> {
        let managers = Managers::decode(self.live.as_ref().and_then(managed_fields)).unwrap();
        let line = |(identity, set): (&Identity, &FieldSet)| {
            let paths: Vec<String> = set.paths().iter().map(|path| path_text(path)).collect();
            format!("{identity}: {}", paths.join(" "))
        };
        managers.iter().map(line).collect()
    }

    #[track_caller]
    fn owned(&mut self, expected: &[&str]) -> &mut Self {
        assert_eq!(self.owners(), expected);
        self
    }
}

fn object(body: Value) -> Value {
    let mut object =
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    for (name, value) in body.as_object().unwrap() {
        match (name.as_str(), value.as_object()) {
            ("metadata", Some(metadata)) => {
                metadata
                    .iter()
                    .for_each(|(name, value)| object["metadata"][name] = value.clone());
            }
            _ => object[name] = value.clone(),
        }
    }
    object
}

#[test]
fn applying_creates_and_owns_what_was_stated() {
    World::new()
        .apply(
            "a",
            json!({"spec": {"size": 1, "inner": {"a": "x"}}, "metadata": {"labels": {"l": "1"}}}),
        )
        .holds(
            json!({"spec": {"size": 1, "inner": {"a": "x"}}, "metadata": {"labels": {"l": "1"}}}),
        )
        .owned(&["\"a\": .metadata.labels.l .spec.size .spec.inner.a"]);
}

#[test]
fn what_is_no_longer_stated_goes() {
    World::new()
        .apply(
            "a",
            json!({"spec": {"size": 1, "inner": {"a": "x", "b": "y"}}}),
        )
        .apply("a", json!({"spec": {"inner": {"b": "y"}}}))
        .holds(json!({"spec": {"inner": {"b": "y"}}}))
        .apply("a", json!({}))
        .holds(json!({}))
        .owned(&[]);
}

#[test]
fn what_others_own_stays_when_one_lets_go() {
    World::new()
        .apply("a", json!({"spec": {"size": 1, "colour": "red"}}))
        .apply("b", json!({"spec": {"size": 1}}))
        .owned(&["\"a\": .spec.colour .spec.size", "\"b\": .spec.size"])
        .apply("a", json!({}))
        .holds(json!({"spec": {"size": 1}}))
        .owned(&["\"b\": .spec.size"])
        .update("u", json!({"spec": {"size": 1, "colour": "blue"}}))
        .apply("b", json!({}))
        .holds(json!({"spec": {"colour": "blue"}}))
        .owned(&["\"u\" using example.com/v1: .spec.colour"]);
}

#[test]
fn what_nobody_owns_stays_as_long_as_something_holds_its_container() {
    let mut world = World::new();
    world
        .update("u", json!({"spec": {"colour": "red"}}))
        .apply("a", json!({"spec": {"size": 1, "inner": {"a": "x"}}}));
    // Someone clears the other owner but keeps the field.
    let kept = world.live.as_ref().unwrap()["metadata"]["managedFields"][0].clone();
    let mut edited = world.live.clone().unwrap();
    edited["metadata"]["managedFields"] = json!([kept]);
    world
        .update_as_is("edit", edited)
        .owned(&["\"a\": .spec.size .spec.inner.a"])
        .apply("a", json!({"spec": {"inner": {"a": "x"}}}))
        .holds(json!({"spec": {"colour": "red", "inner": {"a": "x"}}}))
        .apply("a", json!({}))
        .holds(json!({}));
}

#[test]
fn overwriting_what_another_owns_is_a_conflict_unless_forced() {
    World::new()
        .apply("a", json!({"spec": {"size": 1, "colour": "red"}}))
        .refused("b", json!({"spec": {"size": 2}}), "Apply failed with 1 conflict: conflict with \"a\": .spec.size")
        .refused(
            "b",
            json!({"spec": {"size": 2, "colour": "blue"}}),
            "Apply failed with 2 conflicts: conflicts with \"a\":\n- .spec.colour\n- .spec.size",
        )
        .force("b", json!({"spec": {"size": 2}}))
        .holds(json!({"spec": {"size": 2, "colour": "red"}}))
        .owned(&["\"a\": .spec.colour", "\"b\": .spec.size"])
        .update("u", json!({"spec": {"size": 3, "colour": "red"}}))
        .refused(
            "b",
            json!({"spec": {"size": 2}}),
            "Apply failed with 1 conflict: conflict with \"u\" using example.com/v1: .spec.size",
        )
        .refused(
            "c",
            json!({"spec": {"size": 4, "colour": "green"}}),
            "Apply failed with 2 conflicts: conflicts with \"a\":\n- .spec.colour\nconflicts with \"u\" using example.com/v1:\n- .spec.size",
        );
}

#[test]
fn the_fields_of_a_conflict_are_named_like_the_server_names_them() {
    let mut world = World::new();
    world.apply(
        "a",
        json!({"spec": {"parts": [{"name": "x", "n": 1}], "whole": {"a": "1"}}}),
    );
    let result = apply(
        world.live.as_ref(),
        &object(json!({"spec": {"parts": [{"name": "x", "n": 2}], "whole": {"a": "2"}}})),
        &World::manager("b"),
        false,
        &world.schema,
        Timestamp::UNIX_EPOCH,
    );
    let Err(ApplyError::Conflict(conflicts)) = result else {
        panic!("{result:?}")
    };
    let fields: Vec<String> = conflicts.iter().map(Conflict::field).collect();
    assert_eq!(fields, [".spec.whole", ".spec.parts[name=\"x\"].n"]);
    assert_eq!(conflicts[0].message(), "conflict with \"a\"");
}

#[test]
fn lists_are_owned_item_by_item_or_as_a_whole() {
    World::new()
        .apply("a", json!({"spec": {"set": ["x", "y"], "parts": [{"name": "p", "n": 1}], "list": [1]}}))
        .apply("b", json!({"spec": {"set": ["z"], "parts": [{"name": "q"}]}}))
        .holds(json!({"spec": {"set": ["x", "y", "z"], "parts": [{"name": "p", "n": 1}, {"name": "q"}], "list": [1]}}))
        .refused("b", json!({"spec": {"list": [1, 2]}}), "Apply failed with 1 conflict: conflict with \"a\": .spec.list")
        .apply("a", json!({"spec": {"set": ["y"], "parts": [{"name": "p"}]}}))
        .holds(json!({"spec": {"set": ["y", "z"], "parts": [{"name": "p"}, {"name": "q"}]}}))
        .apply("a", json!({}))
        .holds(json!({"spec": {"set": ["z"], "parts": [{"name": "q"}]}}))
        .refused(
            "b",
            json!({"spec": {"set": ["z", "z"]}}),
            "failed to create typed patch object (/w; example.com/v1, Kind=Widget): .spec.set: duplicate entries for key [=\"z\"]",
        );
}

#[test]
fn owner_references_finalizers_and_labels_merge() {
    let owner = |uid: &str| json!({"apiVersion": "v1", "kind": "X", "name": uid, "uid": uid});
    World::new()
        .apply("a", json!({"metadata": {"ownerReferences": [owner("1")], "finalizers": ["f/a"], "labels": {"a": "1"}}}))
        .apply("b", json!({"metadata": {"ownerReferences": [owner("2")], "finalizers": ["f/b"], "labels": {"b": "2"}}}))
        .apply("a", json!({"metadata": {"labels": {"a": "1"}}}))
        .holds(json!({"metadata": {"ownerReferences": [owner("2")], "finalizers": ["f/b"], "labels": {"a": "1", "b": "2"}}}))
        .owned(&[
            "\"a\": .metadata.labels.a",
            "\"b\": .metadata.finalizers[=\"f/b\"] .metadata.labels.b .metadata.ownerReferences[uid=\"2\"]",
        ]);
}

#[test]
fn bookkeeping_fields_belong_to_nobody() {
    World::new()
        .apply("a", json!({"metadata": {"namespace": "n", "uid": "u", "resourceVersion": "1", "creationTimestamp": null}, "data": {"k": "v"}}))
        .owned(&["\"a\": .data.k"])
        .update("u", json!({"metadata": {"namespace": "n", "uid": "u", "generation": 2, "deletionTimestamp": "t"}, "data": {"k": "v"}}))
        .owned(&["\"a\": .data.k"]);
}

#[test]
fn the_status_has_owners_of_its_own() {
    World::new()
        .apply("a", json!({"spec": {"size": 1}}))
        .apply("a/status", json!({"spec": {"size": 9}, "metadata": {"labels": {"x": "y"}}, "status": {"phase": "Up"}}))
        .holds(json!({"spec": {"size": 1}, "status": {"phase": "Up"}}))
        .owned(&["\"a\": .spec.size", "\"a\" with subresource \"status\": .status.phase"])
        .apply("a", json!({"spec": {"size": 2}}))
        .holds(json!({"spec": {"size": 2}, "status": {"phase": "Up"}}))
        .refused(
            "b/status",
            json!({"status": {"phase": "Down"}}),
            "Apply failed with 1 conflict: conflict with \"a\" with subresource \"status\": .status.phase",
        );
}

#[test]
fn applying_the_same_again_changes_nothing_at_all() {
    let mut world = World::new();
    let body = json!({"spec": {"size": 1, "set": ["x"], "parts": [{"name": "p", "n": 1}]}, "data": {"k": "v"}});
    world.apply("a", body.clone()).update("u", json!({"spec": {"size": 1, "set": ["x", "y"], "parts": [{"name": "p", "n": 1}]}, "data": {"k": "v"}}));
    let before = world.live.clone();
    world.apply("a", body);
    assert_eq!(world.live, before);
    let unchanged = without_managed_fields(before.as_ref().unwrap());
    world.update(
        "u",
        json!({"spec": unchanged["spec"], "data": unchanged["data"]}),
    );
    assert_eq!(world.live, before);
}

#[test]
fn an_object_without_owners_is_not_up_for_grabs() {
    let mut world = World::new();
    world.live = Some(object(json!({"spec": {"size": 1, "colour": "red"}})));
    world
        .refused(
            "a",
            json!({"spec": {"size": 2}}),
            "Apply failed with 1 conflict: conflict with \"before-first-apply\" using example.com/v1: .spec.size",
        )
        .apply("a", json!({"spec": {"size": 1}}))
        .owned(&["\"a\": .spec.size", "\"before-first-apply\" using example.com/v1: .spec .spec.colour .spec.size"]);
}

#[test]
fn an_update_owns_what_it_changed() {
    World::new()
        .update("u", json!({"spec": {"size": 1, "colour": "red"}}))
        .owned(&["\"u\" using example.com/v1: .spec .spec.colour .spec.size"])
        .update("v", json!({"spec": {"size": 2, "colour": "red"}}))
        .owned(&[
            "\"u\" using example.com/v1: .spec .spec.colour",
            "\"v\" using example.com/v1: .spec.size",
        ])
        .update("v", json!({"spec": {"size": 2}}))
        .owned(&[
            "\"u\" using example.com/v1: .spec",
            "\"v\" using example.com/v1: .spec.size",
        ])
        .update("u", json!({}))
        .owned(&[]);
}

#[test]
fn clients_may_rewrite_clear_or_ignore_the_owners() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"size": 1}}));
    let applied = world.live.clone().unwrap();
    // A client that knows nothing about them leaves them as they are,
    world
        .update_as_is("u", object(json!({"spec": {"size": 1}})))
        .owned(&["\"a\": .spec.size"]);
    // one that renames the owner is obeyed,
    let mut renamed = applied.clone();
    renamed["metadata"]["managedFields"][0]["manager"] = json!("b");
    world
        .update_as_is("u", renamed)
        .owned(&["\"b\": .spec.size"]);
    // through a subresource it is not,
    let mut renamed = applied.clone();
    renamed["metadata"]["managedFields"][0]["manager"] = json!("c");
    world
        .update_as_is("u/status", renamed)
        .owned(&["\"b\": .spec.size"]);
    // nonsense is ignored,
    let mut nonsense = applied.clone();
    nonsense["metadata"]["managedFields"] = json!([{"manager": "x"}]);
    world
        .update_as_is("u", nonsense)
        .owned(&["\"b\": .spec.size"]);
    // and an empty list clears.
    for cleared in [json!([]), json!([{}])] {
        world.live = Some(applied.clone());
        let mut new = applied.clone();
        new["metadata"]["managedFields"] = cleared;
        world.update_as_is("u", new).owned(&[]);
        assert_eq!(world.live.as_ref().and_then(managed_fields), None);
    }
}

#[test]
fn the_oldest_updates_are_folded_together() {
    let mut world = World::new();
    let mut data = BTreeMap::new();
    for index in 10..25 {
        data.insert(format!("k{index}"), "v");
        world.update(&format!("u{index}"), json!({"data": data}));
    }
    let owners = world.owners();
    assert_eq!(owners.len(), 10);
    let ancient = owners
        .iter()
        .find(|line| line.starts_with("\"ancient-changes\""))
        .unwrap();
    for key in ["k10", "k11", "k15"] {
        assert!(ancient.contains(&format!(".data.{key}")), "{ancient}");
    }
}

#[test]
fn times_tell_when_an_owner_last_changed_something() {
    let mut world = World::new();
    world
        .apply("a", json!({"data": {"k": "v"}}))
        .apply("b", json!({"data": {"l": "v"}}))
        .apply("a", json!({"data": {"k": "v"}}));
    let entries = world.live.as_ref().unwrap()["metadata"]["managedFields"].clone();
    assert_eq!(
        entries,
        json!([
            {"manager": "a", "operation": "Apply", "apiVersion": "example.com/v1", "time": "1970-01-01T00:00:01Z",
             "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:k": {}}}},
            {"manager": "b", "operation": "Apply", "apiVersion": "example.com/v1", "time": "1970-01-01T00:00:02Z",
             "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:l": {}}}},
        ])
    );
}

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn client_side_applied(world: &mut World, body: Value) {
    let text = format!("{}\n", object(body.clone()));
    let mut new = body;
    new["metadata"]["annotations"] = json!({LAST_APPLIED: text});
    world.update("kubectl-client-side-apply", new);
}

#[test]
fn kubectl_takes_over_what_it_applied_on_the_client_side() {
    let mut world = World::new();
    client_side_applied(&mut world, json!({"data": {"a": "1", "b": "1"}}));
    world.apply("kubectl", json!({"data": {"a": "2", "b": "1"}}));
    let annotation = world.live.as_ref().unwrap()["metadata"]["annotations"][LAST_APPLIED]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        annotation,
        format!("{}\n", object(json!({"data": {"a": "2", "b": "1"}}))),
        "the annotation keeps in step"
    );

    let before = world.live.clone();
    world.apply("kubectl", json!({"data": {"a": "2", "b": "1"}}));
    assert_eq!(world.live, before);
    world.apply("kubectl/status", json!({"status": {"phase": "Up"}}));
    let after = world.live.as_ref().unwrap();
    assert_eq!(
        after["metadata"]["annotations"][LAST_APPLIED], annotation,
        "a subresource leaves it alone"
    );

    let mut world = World::new();
    client_side_applied(&mut world, json!({"data": {"a": "1"}}));
    let text = "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using example.com/v1: .data.a";
    world.refused("other", json!({"data": {"a": "2"}}), text);
}

#[test]
fn kubectl_does_not_take_over_what_someone_changed_since() {
    let mut world = World::new();
    client_side_applied(&mut world, json!({"data": {"a": "1", "b": "1"}}));
    let mut edited = world.live.clone().unwrap();
    edited["data"]["a"] = json!("edited");
    world.update_as_is("editor", edited).refused(
        "kubectl",
        json!({"data": {"a": "2", "b": "2"}}),
        "Apply failed with 1 conflict: conflict with \"editor\" using example.com/v1: .data.a",
    );
}

#[test]
fn what_cannot_be_applied_is_refused() {
    let mut world = World::new();
    world.refused(
        "a",
        json!({"metadata": {"managedFields": []}}),
        "metadata.managedFields must be nil",
    );
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    world.refused(
        "a",
        json!({"spec": deep}),
        "must not be nested deeper than 128 levels",
    );
    world.live = Some(object(
        json!({"metadata": {"managedFields": [{"operation": "Pray"}]}}),
    ));
    world.refused(
        "a",
        json!({}),
        "failed to decode managed fields: operation must be `Apply` or `Update`",
    );
}

/// What apply means for a flat map, spelled out.
#[derive(Default, Debug, Clone)]
struct Model {
    data: BTreeMap<String, String>,
    owners: BTreeMap<String, BTreeSet<String>>,
}

impl Model {
    fn apply(&mut self, manager: &str, config: &BTreeMap<String, String>, force: bool) -> bool {
        let me = format!("apply {manager}");
        let changed: BTreeSet<String> = config
            .iter()
            .filter(|(key, value)| self.data.get(*key) != Some(*value))
            .map(|(key, _)| key.clone())
            .collect();
        let disputed = self
            .owners
            .iter()
            .any(|(owner, keys)| *owner != me && !keys.is_disjoint(&changed));
        if disputed && !force {
            return false;
        }
        let dropped: Vec<String> = self
            .owners
            .get(&me)
            .into_iter()
            .flatten()
            .filter(|key| !config.contains_key(*key))
            .cloned()
            .collect();
        for (owner, keys) in &mut self.owners {
            if *owner != me {
                keys.retain(|key| !changed.contains(key));
            }
        }
        self.owners.insert(me, config.keys().cloned().collect());
        self.data.extend(config.clone());
        for key in dropped {
            if !self.owners.values().any(|keys| keys.contains(&key)) {
                self.data.remove(&key);
            }
        }
        true
    }

    fn update(&mut self, manager: &str, data: &BTreeMap<String, String>) {
        let me = format!("update {manager}");
        let changed: BTreeSet<&String> = self
            .data
            .keys()
            .chain(data.keys())
            .filter(|key| self.data.get(*key) != data.get(*key))
            .collect();
        self.owners
            .values_mut()
            .for_each(|keys| keys.retain(|key| !changed.contains(key)));
        let mine = changed
            .into_iter()
            .filter(|key| data.contains_key(*key))
            .cloned()
            .collect::<Vec<_>>();
        self.owners.entry(me).or_default().extend(mine);
        self.data = data.clone();
    }
}

#[derive(Debug, Clone)]
enum Write {
    Apply {
        manager: String,
        data: BTreeMap<String, String>,
        force: bool,
    },
    Update {
        manager: String,
        data: BTreeMap<String, String>,
    },
}

fn any_writes() -> impl Strategy<Value = Vec<Write>> {
    let data = || prop::collection::btree_map("[a-d]", "[12]", 0..4);
    let write = prop_oneof![
        ("[xy]", data(), any::<bool>()).prop_map(|(manager, data, force)| Write::Apply {
            manager,
            data,
            force
        }),
        ("[xz]", data()).prop_map(|(manager, data)| Write::Update { manager, data }),
    ];
    prop::collection::vec(write, 1..10)
}

proptest! {
    #[test]
    fn any_series_of_writes_agrees_with_the_model(writes in any_writes()) {
        let mut world = World::new();
        // An anchor that nobody else touches: an object whose last owner is gone is no longer tracked.
        world.update("anchor", json!({"spec": {"size": 0}, "data": {"anchor": "0"}}));
        let mut model = Model::default();
        for write in writes {
            match write {
                Write::Apply { manager, data, force } => {
                    let applied = world.try_apply(&manager, json!({"data": data}), force).is_ok();
                    prop_assert_eq!(applied, model.apply(&manager, &data, force));
                }
                Write::Update { manager, mut data } => {
                    model.update(&manager, &data);
                    data.insert("anchor".to_owned(), "0".to_owned());
                    world.update(&manager, json!({"spec": {"size": 0}, "data": data}));
                }
            }
            let live = world.live.as_ref().unwrap();
            let mut data: BTreeMap<String, String> = serde_json::from_value(live["data"].clone()).unwrap();
            prop_assert_eq!(data.remove("anchor"), Some("0".to_owned()));
            prop_assert_eq!(&data, &model.data);

            let managers = Managers::decode(managed_fields(live)).unwrap();
            for (owner, keys) in &model.owners {
                let (operation, name) = owner.split_once(' ').unwrap();
                let operation = if operation == "apply" { Operation::Apply } else { Operation::Update };
                let identity = Identity::new(operation, &World::manager(name));
                let held = keys.iter().all(|key| {
                    managers.fields(&identity).is_some_and(|set| set.contains(&[Element::field("data"), Element::field(key)]))
                });
                prop_assert!(held, "{} owns {:?}: {:?}", owner, keys, world.owners());
            }
            let leaves = managers.iter().flat_map(|(_, set)| set.paths()).filter(|path| path.len() == 2 && path[0] == Element::field("data"));
            let expected = model.owners.values().map(BTreeSet::len).sum::<usize>() + 1;
            prop_assert_eq!(leaves.count(), expected, "nobody owns more than that: {:?}", world.owners());
        }
    }
}
