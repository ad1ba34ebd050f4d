//! Walks over objects that speak of fields: which there are, which differ, how two objects merge, how to take some away.
//!
//! A schema says where a walk must stop: scalars, atomic lists and atomic maps are owned as a whole, everything else by its parts. A list
//! whose items cannot be told apart (a key is missing, an item is no object) is treated as atomic, so no walk can fail.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{Element, Entry, FieldSet};
use crate::schema::{ListKind, TypeRef};

/// How a value takes part in a walk.
enum Shape<'v> {
    Absent,
    Null,
    /// Owned as a whole.
    Leaf,
    Map(&'v Map<String, Value>),
    /// Items with what identifies each.
    List(Vec<(Element, &'v Value)>),
}

impl Shape<'_> {
    fn is_empty(&self) -> bool {
        match self {
            Self::Absent | Self::Null => true,
            Self::Leaf => false,
            Self::Map(fields) => fields.is_empty(),
            Self::List(items) => items.is_empty(),
        }
    }
}

fn shape<'v>(of_type: TypeRef<'_>, value: Option<&'v Value>) -> Shape<'v> {
    match value {
        None => Shape::Absent,
        Some(Value::Null) => Shape::Null,
        Some(Value::Object(fields)) if !of_type.is_atomic_map() => Shape::Map(fields),
        Some(Value::Array(items)) => match identified(of_type, items) {
            Ok(Some(items)) => Shape::List(items),
            Ok(None) | Err(_) => Shape::Leaf,
        },
        Some(_) => Shape::Leaf,
    }
}

/// The items of a list with their identities, or nothing if the list is atomic.
fn identified<'v>(
    of_type: TypeRef<'_>,
    items: &'v [Value],
) -> Result<Option<Vec<(Element, &'v Value)>>, String> {
    if *of_type.list() == ListKind::Atomic {
        return Ok(None);
    }
    let items = items
        .iter()
        .enumerate()
        .map(|(index, item)| match identity(of_type, item) {
            Ok(element) => Ok((element, item)),
            Err(problem) => Err(format!("element {index}: {problem}")),
        });
    items.collect::<Result<_, _>>().map(Some)
}

fn identity(of_type: TypeRef<'_>, item: &Value) -> Result<Element, String> {
    match (of_type.list(), item) {
        (ListKind::Map(keys), Value::Object(fields)) => {
            let mut found = Map::new();
            for key in keys {
                // A key left out stands for its default; without one, having no value there is part of the identity.
                if let Some(value) = fields
                    .get(key)
                    .or_else(|| of_type.items().field(key).default())
                {
                    found.insert(key.clone(), value.clone());
                }
            }
            match found.is_empty() {
                true => Err(format!(
                    "associative list with keys has an element that omits all key fields {keys:?} (and doesn't have default \
                     values for any key fields)"
                )),
                false => Ok(Element::key(found)),
            }
        }
        (ListKind::Map(_), Value::Null) => {
            Err("associative list with keys may not have a null element".to_owned())
        }
        (ListKind::Map(_), _) => {
            Err("associative list with keys may not have non-map elements".to_owned())
        }
        (_, Value::Object(_)) => {
            Err("associative list without keys has an element that's a map type".to_owned())
        }
        (_, Value::Array(_)) => {
            Err("not supported: associative list with lists as elements".to_owned())
        }
        (_, Value::Null) => {
            Err("associative list without keys has an element that's an explicit null".to_owned())
        }
        (_, scalar) => Ok(Element::value(scalar)),
    }
}

/// Refuses an object whose lists hold an item twice or items that cannot be told apart, and says where.
pub(crate) fn check_items(of_type: TypeRef<'_>, value: &Value) -> Result<(), String> {
    match value {
        Value::Object(fields) if !of_type.is_atomic_map() => {
            for (name, field) in fields {
                check_items(of_type.field(name), field)
                    .map_err(|problem| below(&format!(".{name}"), &problem))?;
            }
        }
        Value::Array(items) => {
            let mut seen = BTreeSet::new();
            for (element, item) in identified(of_type, items)
                .map_err(|problem| format!(": {problem}"))?
                .into_iter()
                .flatten()
            {
                check_items(of_type.items(), item)
                    .map_err(|problem| below(&element.to_string(), &problem))?;
                if let Some(twice) = seen.replace(element) {
                    return Err(format!(": duplicate entries for key {twice}"));
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn below(step: &str, problem: &str) -> String {
    format!("{step}{problem}")
}

impl FieldSet {
    /// The fields of an object, as someone who applies it will own them.
    pub(crate) fn of_value(of_type: TypeRef<'_>, value: &Value) -> Self {
        fields(of_type, value).below
    }

    /// The set, with every named field that leads to a member made a member too. Fields of a struct are not normally members when
    /// something in them is; to remove a struct that became empty they have to be.
    pub(crate) fn with_named_fields(&self, of_type: TypeRef<'_>) -> Self {
        let mut set = Self::default();
        for (element, entry) in &self.entries {
            let (named, inner) = match element.as_field() {
                Some(name) => (of_type.names(name), of_type.field(name)),
                None => (false, of_type.items()),
            };
            let member = entry.member || (named && !entry.below.is_empty());
            set.insert(
                element.clone(),
                Entry {
                    member,
                    below: entry.below.with_named_fields(inner),
                },
            );
        }
        set
    }
}

fn fields(of_type: TypeRef<'_>, value: &Value) -> Entry {
    let mut set = Entry::default();
    match shape(of_type, Some(value)) {
        Shape::Leaf => set.member = true,
        Shape::Map(map) => {
            for (name, field) in map {
                let mut entry = fields(of_type.field(name), field);
                let is_blank = field.is_null() || field.as_object().is_some_and(Map::is_empty);
                entry.member |= is_blank || !of_type.names(name);
                set.below.insert(Element::field(name), entry);
            }
        }
        Shape::List(items) => {
            for (element, group) in grouped(&items) {
                let mut entry = match group[..] {
                    [item] => fields(of_type.items(), item),
                    // What is there twice is owned as a whole.
                    _ => Entry::default(),
                };
                entry.member = true;
                set.below.insert(element.clone(), entry);
            }
        }
        Shape::Absent | Shape::Null => {}
    }
    set
}

/// Items by identity; stored objects may hold one twice.
fn grouped<'i, 'v>(items: &'i [(Element, &'v Value)]) -> BTreeMap<&'i Element, Vec<&'v Value>> {
    let mut groups: BTreeMap<&Element, Vec<&Value>> = BTreeMap::new();
    for (element, item) in items {
        groups.entry(element).or_default().push(item);
    }
    groups
}

/// What differs between two objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    pub added: FieldSet,
    pub modified: FieldSet,
    pub removed: FieldSet,
}

impl Comparison {
    pub(crate) fn of(of_type: TypeRef<'_>, old: &Value, new: &Value) -> Self {
        let difference = compare(of_type, Some(old), Some(new));
        Self {
            added: difference.added.below,
            modified: difference.modified.below,
            removed: difference.removed.below,
        }
    }

    /// What the new object has that the old had not, or had otherwise.
    pub(crate) fn changed(&self) -> FieldSet {
        self.modified.union(&self.added)
    }
}

#[derive(Default)]
struct Difference {
    added: Entry,
    modified: Entry,
    removed: Entry,
}

impl Difference {
    fn insert(&mut self, element: &Element, inner: Self) {
        self.added.below.insert(element.clone(), inner.added);
        self.modified.below.insert(element.clone(), inner.modified);
        self.removed.below.insert(element.clone(), inner.removed);
    }

    /// Marks a place itself: as added or removed if one side lacks it, as modified otherwise.
    fn mark(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (None, _) => self.added.member = true,
            (_, None) => self.removed.member = true,
            _ => self.modified.member = true,
        }
    }
}

fn compare(of_type: TypeRef<'_>, old: Option<&Value>, new: Option<&Value>) -> Difference {
    let mut difference = Difference::default();
    if old == new {
        return difference;
    }
    let (old_shape, new_shape) = (shape(of_type, old), shape(of_type, new));
    if old_shape.is_empty() && new_shape.is_empty() {
        // Absent, null and empty are told apart although there is nothing in any of them.
        difference.mark(old, new);
        return difference;
    }
    match (&old_shape, &new_shape) {
        (
            Shape::Map(_) | Shape::Absent | Shape::Null,
            Shape::Map(_) | Shape::Absent | Shape::Null,
        ) => {
            let (old_map, new_map) = (
                old.and_then(Value::as_object),
                new.and_then(Value::as_object),
            );
            let names = old_map
                .into_iter()
                .chain(new_map)
                .flat_map(Map::keys)
                .collect::<BTreeSet<_>>();
            for name in names {
                let (old, new) = (
                    old_map.and_then(|map| map.get(name)),
                    new_map.and_then(|map| map.get(name)),
                );
                difference.insert(
                    &Element::field(name),
                    compare(of_type.field(name), old, new),
                );
            }
        }
        (
            Shape::List(_) | Shape::Absent | Shape::Null,
            Shape::List(_) | Shape::Absent | Shape::Null,
        ) => {
            compare_lists(of_type, &old_shape, &new_shape, &mut difference);
        }
        (Shape::Leaf, Shape::Leaf | Shape::Absent | Shape::Null)
        | (Shape::Absent | Shape::Null, Shape::Leaf) => {
            difference.mark(old, new);
            return difference;
        }
        // One kind of value took the place of another: the place is modified, what was in it is gone, what is in it is new.
        _ => {
            difference.modified.member = true;
            difference.removed.below = compare(of_type, old, None).removed.below;
            difference.added.below = compare(of_type, None, new).added.below;
            return difference;
        }
    }
    if old.is_none() || new.is_none() {
        difference.mark(old, new);
    }
    difference
}

fn compare_lists(
    of_type: TypeRef<'_>,
    old: &Shape<'_>,
    new: &Shape<'_>,
    difference: &mut Difference,
) {
    let (old, new) = (grouped(items_of(old)), grouped(items_of(new)));
    for element in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
        let old = old.get(element).map_or(&[][..], Vec::as_slice);
        let new = new.get(element).map_or(&[][..], Vec::as_slice);
        let (first_old, first_new) = (old.first().copied(), new.first().copied());
        let mut inner = Difference::default();
        match (old.len(), new.len()) {
            (0 | 1, 0 | 1) => inner = compare(of_type.items(), first_old, first_new),
            // Items held twice are compared and owned as a whole.
            (2.., 2..) => inner.modified.member = old != new,
            (2.., _) => {
                inner = compare(of_type.items(), None, first_new);
                inner.removed.member = true;
            }
            (_, 2..) => {
                inner = compare(of_type.items(), first_old, None);
                inner.added.member = true;
            }
        }
        difference.insert(element, inner);
    }
}

/// The live object with the applied one merged into it.
pub(crate) fn merge(
    of_type: TypeRef<'_>,
    live: Option<&Value>,
    applied: Option<&Value>,
) -> Option<Value> {
    let (live_shape, applied_shape) = (shape(of_type, live), shape(of_type, applied));
    if live_shape.is_empty() && applied_shape.is_empty() {
        return applied.or(live).cloned();
    }
    match (live_shape, applied_shape) {
        (_, Shape::Leaf) => applied.cloned(),
        (Shape::Leaf, Shape::Absent) => live.cloned(),
        (Shape::Leaf, Shape::Null) => applied.cloned(),
        (live_shape, Shape::Map(applied)) => {
            Some(merge_maps(of_type, as_map(&live_shape), Some(applied)))
        }
        (Shape::Map(live), _) => Some(merge_maps(of_type, Some(live), None)),
        (live_shape, Shape::List(applied)) => {
            Some(merge_lists(of_type, items_of(&live_shape), &applied))
        }
        (Shape::List(live), _) => Some(merge_lists(of_type, &live, &[])),
        (Shape::Absent | Shape::Null, Shape::Absent | Shape::Null) => applied.or(live).cloned(),
    }
}

fn as_map<'v>(shape: &Shape<'v>) -> Option<&'v Map<String, Value>> {
    match shape {
        Shape::Map(fields) => Some(fields),
        _ => None,
    }
}

fn items_of<'s, 'v>(shape: &'s Shape<'v>) -> &'s [(Element, &'v Value)] {
    match shape {
        Shape::List(items) => items,
        _ => &[],
    }
}

fn merge_maps(
    of_type: TypeRef<'_>,
    live: Option<&Map<String, Value>>,
    applied: Option<&Map<String, Value>>,
) -> Value {
    let names = live
        .into_iter()
        .chain(applied)
        .flat_map(Map::keys)
        .collect::<BTreeSet<_>>();
    let merged = names.into_iter().filter_map(|name| {
        let (live, applied) = (
            live.and_then(|map| map.get(name)),
            applied.and_then(|map| map.get(name)),
        );
        Some((name.clone(), merge(of_type.field(name), live, applied)?))
    });
    Value::Object(merged.collect())
}

/// Applied items come in the order they were applied in; live ones that were not applied keep their place between those that were.
fn merge_lists(
    of_type: TypeRef<'_>,
    live: &[(Element, &Value)],
    applied: &[(Element, &Value)],
) -> Value {
    let live_groups = grouped(live);
    let applied_groups = grouped(applied);
    let in_applied = |element: &Element| applied_groups.contains_key(element);
    // What both have, in applied order: the next of these tells which live item we are waiting for.
    let mut shared = applied
        .iter()
        .map(|(element, _)| element)
        .filter(|element| live_groups.contains_key(*element))
        .peekable();
    let mut merged_already = BTreeSet::new();
    let mut merged = Vec::with_capacity(live.len().max(applied.len()));
    let (mut live_at, mut applied_at) = (0, 0);
    while live_at < live.len() || applied_at < applied.len() {
        if let (Some((live_element, _)), Some((applied_element, _))) =
            (live.get(live_at), applied.get(applied_at))
            && live_element != applied_element
            && in_applied(live_element)
            && shared.peek().is_some_and(|next| *next != live_element)
        {
            // Shared, but not the one whose turn it is.
            live_at += 1;
            continue;
        }
        if let Some((element, item)) = live.get(live_at) {
            if !in_applied(element) {
                merged.extend(merge(of_type.items(), Some(item), None));
                live_at += 1;
                continue;
            }
            let is_same = applied
                .get(applied_at)
                .is_some_and(|(applied, _)| applied == element);
            if is_same || merged_already.contains(element) {
                live_at += 1;
            }
        }
        if let Some((element, item)) = applied.get(applied_at) {
            // A live item held twice cannot be merged with; the applied one takes its place.
            let counterpart = match live_groups.get(element).map(Vec::as_slice) {
                Some([live]) => Some(*live),
                _ => None,
            };
            merged.extend(merge(of_type.items(), counterpart, Some(item)));
            merged_already.insert(element);
            applied_at += 1;
            if shared.peek() == Some(&element) {
                shared.next();
            }
        }
    }
    Value::Array(merged)
}

/// Takes the members of a set out of an object. A container that becomes empty goes with what was in it.
pub(crate) fn remove(of_type: TypeRef<'_>, value: &mut Value, set: &FieldSet) {
    if set.is_empty() {
        return;
    }
    match value {
        Value::Object(fields) if !of_type.is_atomic_map() => {
            fields.retain(|name, field| match set.entries.get(&Element::field(name)) {
                Some(entry) => keep(of_type.field(name), field, entry),
                None => true,
            })
        }
        Value::Array(items) => {
            let Ok(Some(identified)) = identified(of_type, items) else {
                return;
            };
            let mut entries: Vec<Option<&Entry>> = identified
                .iter()
                .map(|(element, _)| set.entries.get(element))
                .collect();
            let mut entries = entries.drain(..);
            items.retain_mut(|item| match entries.next().flatten() {
                Some(entry) => keep(of_type.items(), item, entry),
                None => true,
            });
        }
        _ => {}
    }
}

fn keep(of_type: TypeRef<'_>, value: &mut Value, entry: &Entry) -> bool {
    let is_blank = |value: &Value| match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    if entry.member {
        return false;
    }
    let was_blank = is_blank(value);
    remove(of_type, value, &entry.below);
    was_blank || !is_blank(value)
}
