//! Samples in, schema out; a reader of its own judges whether the schema accepts them.

use super::*;

/// What the schemas that are made here mean.
fn accepts(schema: &Value, value: &Value) -> bool {
    let kind_fits = |kind: &str| match value {
        Value::Null => kind == "null",
        Value::Bool(_) => kind == "boolean",
        Value::Number(number) => kind == "number" || (kind == "integer" && !number.is_f64()),
        Value::String(_) => kind == "string",
        Value::Array(_) => kind == "array",
        Value::Object(_) => kind == "object",
    };
    let fits = match &schema["type"] {
        Value::Null => true,
        Value::String(kind) => kind_fits(kind),
        Value::Array(kinds) => kinds.iter().any(|kind| kind_fits(kind.as_str().unwrap())),
        other => panic!("{other}"),
    };
    let items_fit = || {
        let items = value.as_array().into_iter().flatten();
        schema
            .get("items")
            .is_none_or(|schema| items.into_iter().all(|item| accepts(schema, item)))
    };
    let members_fit = || {
        let Some(members) = value.as_object() else {
            return true;
        };
        let required = schema["required"].as_array().into_iter().flatten();
        let known = |name: &String| schema["properties"].get(name);
        required
            .into_iter()
            .all(|name| members.contains_key(name.as_str().unwrap()))
            && members
                .iter()
                .all(|(name, value)| known(name).is_none_or(|schema| accepts(schema, value)))
    };
    fits && items_fit() && members_fit()
}

fn schema_of(samples: &[Value]) -> Value {
    let mut shape = DataShape::default();
    samples.iter().for_each(|sample| shape.add(sample));
    let mut schema = shape.schema().unwrap();
    schema.as_object_mut().unwrap().remove("$schema");
    schema
}

#[test]
fn a_schema_says_what_samples_have_in_common() {
    let samples = [
        json!({"order": 1, "total": 1, "tags": ["a"], "note": null}),
        json!({"order": 2, "total": 1.5, "tags": []}),
    ];
    let expected = json!({
        "type": "object",
        "properties": {
            "order": {"type": "integer"},
            "total": {"type": "number"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "note": {"type": "null"},
        },
        "required": ["order", "tags", "total"],
    });
    assert_eq!(schema_of(&samples), expected);
    assert_eq!(
        schema_of(&[json!(1), json!("a")]),
        json!({"type": ["integer", "string"]})
    );
    assert_eq!(DataShape::default().schema(), None);
}

#[test]
fn what_is_deep_or_wide_costs_no_more_than_its_bounds() {
    let mut deep = json!(1);
    for _ in 0..100 {
        deep = json!({"in": [deep]});
    }
    let wide: Map<String, Value> = (0..10_000)
        .map(|number| (format!("k{number}"), json!(number)))
        .collect();
    let samples = [
        deep,
        Value::Object(wide),
        json!([[1], vec![json!(1); 5000], ["a"]]),
    ];
    let schema = schema_of(&samples);
    assert!(schema.to_string().len() < 20_000);
    assert!(samples.iter().all(|sample| accepts(&schema, sample)));
}

/// Invents values that are alike, and not.
struct Invention(u64);

impl Invention {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % bound
    }

    fn value(&mut self, depth: u32) -> Value {
        match self.below(if depth == 0 { 6 } else { 9 }) {
            0 => Value::Null,
            1 => json!(self.below(2) == 0),
            2 => json!(self.below(1000)),
            3 => json!(0.5),
            4 => json!(u64::MAX),
            5 => json!("text"),
            6 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let members = self.below(5);
                let member = |invention: &mut Self| {
                    let name =
                        ["a", "b", "c", "$ref", ""][usize::try_from(invention.below(5)).unwrap()];
                    (name.to_owned(), invention.value(depth - 1))
                };
                Value::Object((0..members).map(|_| member(self)).collect())
            }
        }
    }
}

#[test]
fn a_schema_accepts_all_that_it_was_made_from() {
    let mut invention = Invention(3);
    let mut refused = 0;
    for _ in 0..2000 {
        let count = 1 + invention.below(8);
        let samples: Vec<Value> = (0..count).map(|_| invention.value(10)).collect();
        let schema = schema_of(&samples);
        for sample in &samples {
            assert!(accepts(&schema, sample), "{schema} {sample}");
        }
        refused += u32::from(!accepts(&schema, &invention.value(3)));
    }
    assert!(
        refused > 100,
        "a schema that accepts everything says nothing: {refused}"
    );
}
