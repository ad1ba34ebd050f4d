//! Tables: objects as the rows that `kubectl get` prints.
//!
//! Columns come from the `additionalPrinterColumns` of a CustomResourceDefinition, or are those of a built-in kind. A row carries the cells
//! and, as far as the client asked, the object. Watches send the column definitions once, with the first table.

mod age;
mod built_in;

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::jsonpath::{self, JsonPath};

/// How much of each object goes into its row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IncludeObject {
    None,
    #[default]
    Metadata,
    Object,
}

impl IncludeObject {
    /// Reads the `includeObject` query parameter.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "None" => Some(Self::None),
            "" | "Metadata" => Some(Self::Metadata),
            "Object" => Some(Self::Object),
            _ => None,
        }
    }
}

/// A cell from an object, at a time.
type Render = fn(&Value, Timestamp) -> Value;

#[derive(Debug)]
enum Cell {
    /// A column of a CustomResourceDefinition: a path, and the type that says how to print what is there.
    Path { path: JsonPath, type_name: String },
    /// A column of a built-in kind.
    BuiltIn(Render),
}

/// The columns of a resource.
#[derive(Debug)]
pub struct Columns {
    definitions: Vec<Value>,
    cells: Vec<Cell>,
}

impl Columns {
    /// Compiles `additionalPrinterColumns`. The name always comes first; without columns of its own a resource shows its age.
    pub fn compile(additional: Option<&Value>) -> Result<Self, jsonpath::Error> {
        let mut columns = Self {
            definitions: Vec::new(),
            cells: Vec::new(),
        };
        columns.push(
            definition("Name", "string", "name", NAME, 0),
            Cell::BuiltIn(built_in::name),
        );
        let age = [
            json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp", "description": AGE}),
        ];
        let additional = match additional.and_then(Value::as_array) {
            Some(columns) if !columns.is_empty() => columns.as_slice(),
            _ => &age[..],
        };
        for column in additional {
            let text = |name: &str| column.get(name).and_then(Value::as_str).unwrap_or_default();
            let path = JsonPath::parse(text("jsonPath"))?;
            let fallback = format!(
                "Custom resource definition column (in JSONPath format): {}",
                text("jsonPath")
            );
            let description = if text("description").is_empty() {
                &fallback
            } else {
                text("description")
            };
            let priority = column
                .get("priority")
                .and_then(Value::as_i64)
                .unwrap_or_default();
            columns.push(
                definition(
                    text("name"),
                    text("type"),
                    text("format"),
                    description,
                    priority,
                ),
                Cell::Path {
                    path,
                    type_name: text("type").to_owned(),
                },
            );
        }
        Ok(columns)
    }

    /// The columns of a built-in kind: Namespace, ConfigMap, Secret, Event, Lease, CustomResourceDefinition. Others show name and age.
    pub fn built_in(kind: &str) -> Self {
        let mut columns = Self {
            definitions: Vec::new(),
            cells: Vec::new(),
        };
        for column in built_in::columns(kind) {
            let format = if column.name == "Name" { "name" } else { "" };
            columns.push(
                definition(
                    column.name,
                    column.type_name,
                    format,
                    column.description,
                    column.priority,
                ),
                Cell::BuiltIn(column.render),
            );
        }
        columns
    }

    fn push(&mut self, definition: Value, cell: Cell) {
        self.definitions.push(definition);
        self.cells.push(cell);
    }

    /// Renders objects. `list_metadata` is that of the list (resourceVersion, continue, remainingItemCount); `with_definitions` is
    /// false for all but the first table of a watch.
    pub fn table<'a>(
        &self,
        objects: impl IntoIterator<Item = &'a Value>,
        list_metadata: Value,
        include: IncludeObject,
        with_definitions: bool,
        now: Timestamp,
    ) -> Value {
        let rows = objects
            .into_iter()
            .map(|object| self.row(object, include, now))
            .collect();
        // A table without definitions has null there, not an empty list; clients tell "as before" from "none" by it.
        let definitions = if with_definitions {
            Value::Array(self.definitions.clone())
        } else {
            Value::Null
        };
        json!({
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": list_metadata,
            "columnDefinitions": definitions,
            "rows": Value::Array(rows),
        })
    }

    fn row(&self, object: &Value, include: IncludeObject, now: Timestamp) -> Value {
        let cells: Vec<Value> = self
            .cells
            .iter()
            .map(|cell| cell.render(object, now))
            .collect();
        let mut row = Map::new();
        row.insert("cells".to_owned(), Value::Array(cells));
        match include {
            IncludeObject::None => {}
            IncludeObject::Object => drop(row.insert("object".to_owned(), object.clone())),
            IncludeObject::Metadata => {
                let metadata = object.get("metadata").cloned().unwrap_or_else(|| json!({}));
                let partial = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata});
                row.insert("object".to_owned(), partial);
            }
        }
        Value::Object(row)
    }
}

impl Cell {
    fn render(&self, object: &Value, now: Timestamp) -> Value {
        match self {
            Self::BuiltIn(render) => render(object, now),
            Self::Path { path, type_name } => path
                .first(object)
                .map_or(Value::Null, |value| cell(type_name, value, now)),
        }
    }
}

/// A value in a column of some type; what does not fit the type is not shown.
fn cell(type_name: &str, value: &Value, now: Timestamp) -> Value {
    match (type_name, value) {
        ("string", Value::String(_)) => value.clone(),
        ("string", Value::Null) => Value::Null,
        ("string", other) => Value::String(other.to_string()),
        ("integer", Value::Number(number)) => number
            .as_i64()
            .or_else(|| number.as_f64().map(|float| float as i64))
            .map_or(Value::Null, Value::from),
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(text)) => match text.parse::<Timestamp>() {
            Ok(time) => age::since(Some(time), now).into(),
            Err(_) => "<invalid>".into(),
        },
        _ => Value::Null,
    }
}

const NAME: &str = "Name of the object, unique among those of its kind in its namespace.";
const AGE: &str = "Time since the object was created.";

fn definition(
    name: &str,
    type_name: &str,
    format: &str,
    description: &str,
    priority: i64,
) -> Value {
    json!({"name": name, "type": type_name, "format": format, "description": description, "priority": priority})
}
