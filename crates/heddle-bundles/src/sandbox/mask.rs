//! Takes secrets out of text as it streams by.
//!
//! What is secret is guessed from names, and everything in credentials counts. A secret is found also where it is cut by the
//! border between two reads, written as a JSON string or in base64. What a program makes of a secret otherwise cannot be
//! known: this keeps accidents out of logs, not treason.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// Shorter ones would take ordinary words out of a log, and are found by trying anyway.
const SECRET_BYTES_MIN: usize = 4;

/// More than this is not compared with: a variable of that size is no password.
const SECRET_BYTES_MAX: usize = 4096;

const MASK: &[u8] = b"***";

/// Variables that hold credentials, whatever the names inside are.
const CREDENTIALS: [&str; 2] = ["_apb_provision_creds", "_apb_bind_creds"];

/// A name with one of these in it names a secret.
const SECRET_NAMES: [&str; 10] = [
    "pass",
    "pwd",
    "secret",
    "token",
    "credential",
    "private",
    "apikey",
    "api_key",
    "access_key",
    "auth",
];

/// Secrets, longest first, with what was read and cannot be judged yet.
#[derive(Default)]
pub(super) struct Masker {
    secrets: Vec<Vec<u8>>,
    /// Whether some secret begins with a byte.
    begins: Vec<bool>,
    held: Vec<u8>,
}

impl Masker {
    pub(super) fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut all = Vec::new();
        for secret in secrets {
            if !(SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&secret.len()) {
                continue;
            }
            let quoted = Value::from(secret.as_str()).to_string();
            all.push(quoted.as_bytes()[1..quoted.len() - 1].to_vec());
            all.push(STANDARD.encode(&secret).into_bytes());
            // A text that is printed loses the ends of its lines, or has others.
            all.extend(
                secret
                    .lines()
                    .filter(|line| line.len() >= SECRET_BYTES_MIN)
                    .map(|line| line.as_bytes().to_vec()),
            );
            all.push(secret.into_bytes());
        }
        all.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        all.dedup();
        let mut begins = vec![false; 256];
        for secret in &all {
            begins[usize::from(secret[0])] = true;
        }
        Self {
            secrets: all,
            begins,
            held: Vec::new(),
        }
    }

    /// Hands out what can be judged of everything fed so far.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        let longest = self.secrets.first().map_or(0, Vec::len);
        let mut out = Vec::with_capacity(self.held.len());
        let mut at = 0;
        while at < self.held.len() {
            let rest = &self.held[at..];
            if !self.begins.get(usize::from(rest[0])).unwrap_or(&false) {
                out.push(rest[0]);
                at += 1;
                continue;
            }
            // The longest match is wanted, so everything that may still grow into one waits.
            let may_grow =
                |secret: &&Vec<u8>| secret.len() > rest.len() && secret.starts_with(rest);
            if rest.len() < longest && self.secrets.iter().any(|secret| may_grow(&secret)) {
                break;
            }
            at += self.step(at, &mut out);
        }
        self.held.drain(..at);
        out
    }

    /// What is left when nothing more comes. A secret that was cut short is still one.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut at = 0;
        while at < self.held.len() {
            at += self.step(at, &mut out);
        }
        self.held.clear();
        out
    }

    /// Judges one place and returns how many bytes that took.
    fn step(&self, at: usize, out: &mut Vec<u8>) -> usize {
        let rest = &self.held[at..];
        match self.secrets.iter().find(|secret| rest.starts_with(secret)) {
            Some(secret) => {
                out.extend_from_slice(MASK);
                secret.len()
            }
            None => {
                out.push(rest[0]);
                1
            }
        }
    }

    /// A whole text at once.
    pub(super) fn text(&self, text: &str) -> String {
        let mut masker = Self {
            secrets: self.secrets.clone(),
            begins: self.begins.clone(),
            held: Vec::new(),
        };
        let mut out = masker.feed(text.as_bytes());
        out.extend(masker.finish());
        String::from_utf8_lossy(&out).into_owned()
    }
}

/// The secrets among the variables of a run.
pub(super) fn secrets_of_variables(variables: &Map<String, Value>) -> Vec<String> {
    let mut secrets = Vec::new();
    for (name, value) in variables {
        let all = CREDENTIALS.contains(&name.as_str());
        gather(value, all || looks_secret(name), &mut secrets);
    }
    secrets
}

/// The secrets among credentials that were just made. Names of hosts and users in them may be said.
pub(super) fn secrets_of_credentials(credentials: &Map<String, Value>) -> Vec<String> {
    let mut secrets = Vec::new();
    for (name, value) in credentials {
        gather(value, looks_secret(name), &mut secrets);
    }
    secrets
}

fn gather(value: &Value, secret: bool, out: &mut Vec<String>) {
    match value {
        Value::String(text) if secret => out.push(text.clone()),
        Value::Number(number) if secret => out.push(number.to_string()),
        Value::Array(values) => values.iter().for_each(|value| gather(value, secret, out)),
        Value::Object(fields) => {
            for (name, value) in fields {
                gather(value, secret || looks_secret(name), out);
            }
        }
        _ => {}
    }
}

fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    name == "key" || name.ends_with("_key") || SECRET_NAMES.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests;
