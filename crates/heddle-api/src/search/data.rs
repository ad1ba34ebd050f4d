//! Looking into JSON data along a path, without building it in memory.
//!
//! Arrays are gone through: a number is the place in one, anything else is looked for in each of its items, and so is a value
//! at the end of the path. Data that is not JSON as a whole has no paths.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::text::{Operator, SoughtNumber, SoughtValue};

/// What must be at the end of a path.
#[derive(Clone, Debug)]
pub(super) struct DataTerm {
    pub(super) path: Vec<Box<str>>,
    pub(super) value: SoughtValue,
}

impl DataTerm {
    pub(super) fn holds(&self, data: &[u8]) -> bool {
        // Only these have paths, and most data that is not JSON shows it at once.
        let begins = data.iter().find(|byte| !byte.is_ascii_whitespace());
        if !matches!(begins, Some(b'{' | b'[')) {
            return false;
        }
        let mut json = serde_json::Deserializer::from_slice(data);
        let walk = PathWalk {
            path: &self.path,
            value: &self.value,
            through_array: false,
        };
        let found = walk.deserialize(&mut json);
        found.is_ok_and(|found| found) && json.end().is_ok()
    }
}

/// What is left of a path. Gives whether something behind it is what was asked for.
#[derive(Clone, Copy)]
struct PathWalk<'a> {
    path: &'a [Box<str>],
    value: &'a SoughtValue,
    /// One array was just gone through at the end of the path; arrays within it are not.
    through_array: bool,
}

impl PathWalk<'_> {
    fn is_at_end(&self) -> bool {
        self.path.is_empty()
    }

    fn number(&self, found: SoughtNumber) -> bool {
        let SoughtValue {
            operator, number, ..
        } = self.value;
        let order = number.and_then(|number| found.order(number));
        self.is_at_end()
            && match order {
                Some(order) => operator.admits(order),
                None if operator.is_order() => false,
                None => self.value.pattern.is_anything() == (*operator == Operator::Is),
            }
    }

    /// `true`, `false` and `null` are written as they are.
    fn name(&self, name: &str) -> bool {
        self.is_at_end() && !self.value.operator.is_order() && self.value.admits_text(name)
    }

    /// Whether it is enough that something is there.
    fn is_there(&self) -> bool {
        self.is_at_end() && self.value.operator == Operator::Is && self.value.pattern.is_anything()
    }
}

impl<'de> DeserializeSeed<'de> for PathWalk<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for PathWalk<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<bool, E> {
        Ok(self.name(if value { "true" } else { "false" }))
    }

    fn visit_i64<E>(self, value: i64) -> Result<bool, E> {
        Ok(self.number(SoughtNumber::Whole(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<bool, E> {
        Ok(self.number(SoughtNumber::Whole(value.into())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<bool, E> {
        Ok(self.number(SoughtNumber::Real(value)))
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(self.name("null"))
    }

    fn visit_str<E>(self, text: &str) -> Result<bool, E> {
        let value = self.value;
        // A number that is asked for by its order is no text.
        let is_number = value.operator.is_order() && value.number.is_some();
        Ok(self.is_at_end() && !is_number && value.admits_text(text))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let Some((name, path)) = self.path.split_first() else {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(self.is_there());
        };
        let mut found = false;
        let within = PathWalk {
            path,
            through_array: false,
            ..self
        };
        while let Some(is_it) = map.next_key_seed(MemberName(name))? {
            if is_it {
                found |= map.next_value_seed(within)?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        let first = self.path.first();
        if let Some(place) = first.and_then(|name| name.parse::<usize>().ok()) {
            let within = PathWalk {
                path: &self.path[1..],
                through_array: false,
                ..self
            };
            let mut found = false;
            for at in 0.. {
                let more = if at == place {
                    let item = items.next_element_seed(within)?;
                    found |= item.unwrap_or(false);
                    item.is_some()
                } else {
                    items.next_element::<IgnoredAny>()?.is_some()
                };
                if !more {
                    break;
                }
            }
            return Ok(found);
        }
        if self.through_array {
            while items.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(false);
        }
        let within = PathWalk {
            through_array: true,
            ..self
        };
        let mut found = self.is_there();
        while let Some(item) = items.next_element_seed(within)? {
            found |= item;
        }
        Ok(found)
    }
}

/// Compares the name of a member without keeping it.
struct MemberName<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for MemberName<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for MemberName<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}
