//! An image's configuration: which program to start, with what, and what its author wrote on it.

use std::collections::BTreeMap;

use serde::Deserialize;

/// What a configuration says, as far as it matters here.
#[derive(Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "PascalCase", default)]
pub struct Config {
    #[serde(deserialize_with = "or_default")]
    pub entrypoint: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub cmd: Vec<String>,
    /// `NAME=value`.
    #[serde(deserialize_with = "or_default")]
    pub env: Vec<String>,
    pub working_dir: String,
    #[serde(deserialize_with = "or_default")]
    pub labels: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Whole {
    #[serde(default, deserialize_with = "or_default")]
    config: Config,
}

/// Absent and `null` are the same to those who write configurations.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Config {
    /// Takes a configuration apart.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let whole: Whole = serde_json::from_slice(bytes)
            .map_err(|error| format!("the image's configuration cannot be read: {error}"))?;
        Ok(whole.config)
    }
}
