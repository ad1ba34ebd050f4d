//! What is hidden in the data of events from everybody below administrator: the places that JSON pointers name.
//!
//! It hides what is shown, on every face alike, and what is searched: who does not see a place finds nothing by it. Subscribers
//! get events whole. Data is changed where it stands, so that numbers beside a hidden place keep their digits. What cannot be
//! looked into, because it is no JSON, is hidden as a whole: nobody can say what is in it.

#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::de::IgnoredAny;
use serde_json::Value;

/// What stands in the place of a hidden value.
pub const HIDDEN: &str = "\"***\"";
/// Pointers of one mask, and names in one pointer.
const POINTERS_MAX: usize = 100;
const NAMES_MAX: usize = 32;
/// What is nested deeper is not looked into.
const DEPTH_MAX: usize = 128;
/// A name that stands for every member and every item.
const ANY: &str = "*";

/// One place, such as `/card/number` or `/items/*/iban`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaskPointer(Vec<String>);

/// All of them; none hides nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mask(Vec<MaskPointer>);

/// Why a pointer cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no JSON pointer such as /card/number; * stands for every member or item")]
pub struct NoPointer {
    text: String,
}

/// What is left of data to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Masked {
    /// Nothing in it is hidden.
    Whole,
    /// With hidden places.
    Part(Vec<u8>),
    /// It cannot be looked into.
    Nothing,
}

impl FromStr for MaskPointer {
    type Err = NoPointer;

    fn from_str(text: &str) -> Result<Self, NoPointer> {
        let fault = || NoPointer {
            text: text.to_owned(),
        };
        let names = text.strip_prefix('/').ok_or_else(fault)?.split('/');
        let names: Vec<String> = names
            .map(|name| name.replace("~1", "/").replace("~0", "~"))
            .collect();
        match names.len() > NAMES_MAX {
            true => Err(fault()),
            false => Ok(Self(names)),
        }
    }
}

impl fmt::Display for MaskPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|name| write!(f, "/{}", name.replace('~', "~0").replace('/', "~1")))
    }
}

impl Mask {
    /// At most a hundred: each costs a look at every member of what is shown.
    ///
    /// # Errors
    /// Where a text is no pointer, or there are too many.
    pub fn new(texts: &[String]) -> Result<Self, NoPointer> {
        if let Some(text) = texts.get(POINTERS_MAX) {
            return Err(NoPointer { text: text.clone() });
        }
        let pointers = texts.iter().map(|text| text.parse());
        Ok(Self(pointers.collect::<Result<_, _>>()?))
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[must_use]
    pub fn pointers(&self) -> &[MaskPointer] {
        &self.0
    }

    /// What may be shown of some data.
    #[must_use]
    pub fn apply(&self, data: &[u8]) -> Masked {
        if self.is_empty() || data.is_empty() {
            return Masked::Whole;
        }
        let readable =
            std::str::from_utf8(data).is_ok() && serde_json::from_slice::<IgnoredAny>(data).is_ok();
        if !readable {
            return Masked::Nothing;
        }
        let mut scan = Scan {
            text: data,
            at: 0,
            depth: 0,
            hidden: Vec::new(),
        };
        let wanted: Vec<&[String]> = self.0.iter().map(|pointer| &*pointer.0).collect();
        if scan.value(&wanted).is_none() {
            return Masked::Nothing;
        }
        if scan.hidden.is_empty() {
            return Masked::Whole;
        }
        let mut shown = Vec::with_capacity(data.len());
        let mut from = 0;
        for hidden in scan.hidden {
            shown.extend_from_slice(&data[from..hidden.start]);
            shown.extend_from_slice(HIDDEN.as_bytes());
            from = hidden.end;
        }
        shown.extend_from_slice(&data[from..]);
        Masked::Part(shown)
    }

    /// Takes the hidden places out: what is made of the rest says nothing of them.
    pub fn remove(&self, value: &mut Value) {
        for pointer in &self.0 {
            remove(value, &pointer.0);
        }
    }
}

fn remove(value: &mut Value, names: &[String]) {
    let Some((name, rest)) = names.split_first() else {
        return;
    };
    let is_it = |found: &str| name == ANY || name == found;
    match value {
        Value::Object(members) if rest.is_empty() => members.retain(|found, _| !is_it(found)),
        Value::Object(members) => {
            let inside = members.iter_mut().filter(|(found, _)| is_it(found));
            inside.for_each(|(_, value)| remove(value, rest));
        }
        Value::Array(items) if rest.is_empty() => {
            let mut number = 0..;
            items.retain(|_| !is_it(&number.next().unwrap_or(0).to_string()));
        }
        Value::Array(items) => {
            let inside = items.iter_mut().enumerate();
            let inside = inside.filter(|(number, _)| is_it(&number.to_string()));
            inside.for_each(|(_, value)| remove(value, rest));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A walk over JSON that was found to be sound.
struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
    /// Of values, in order and apart.
    hidden: Vec<Range<usize>>,
}

/// `None` where the text is too deep, or not what it was found to be; then nothing of it is shown.
impl Scan<'_> {
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at)?.is_ascii_whitespace() {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    /// The next of these.
    fn next_of(&mut self, wanted: &[u8]) -> Option<u8> {
        let found = self.peek().filter(|found| wanted.contains(found))?;
        self.at += 1;
        Some(found)
    }

    fn value(&mut self, wanted: &[&[String]]) -> Option<()> {
        if self.depth >= DEPTH_MAX {
            return None;
        }
        self.depth += 1;
        match self.peek()? {
            b'{' => self.members(wanted)?,
            b'[' => self.items(wanted)?,
            b'"' => {
                self.string()?;
            }
            _ => {
                let rest = &self.text[self.at..];
                let ends = |byte: &u8| byte.is_ascii_whitespace() || b",]}".contains(byte);
                self.at += rest.iter().position(ends).unwrap_or(rest.len());
            }
        }
        self.depth -= 1;
        Some(())
    }

    /// The bytes of a string, with its quotes.
    fn string(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        self.next_of(b"\"")?;
        loop {
            match self.text.get(self.at)? {
                b'\\' => self.at += 2,
                b'"' => {
                    self.at += 1;
                    return Some(start..self.at);
                }
                _ => self.at += 1,
            }
        }
    }

    fn members(&mut self, wanted: &[&[String]]) -> Option<()> {
        self.at += 1;
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(());
        }
        loop {
            self.peek()?;
            let name = self.string()?;
            self.next_of(b":")?;
            let name: String = serde_json::from_slice(&self.text[name]).ok()?;
            self.part(&name, wanted)?;
            if self.next_of(b",}")? == b'}' {
                return Some(());
            }
        }
    }

    fn items(&mut self, wanted: &[&[String]]) -> Option<()> {
        self.at += 1;
        if self.peek()? == b']' {
            self.at += 1;
            return Some(());
        }
        for number in 0_usize.. {
            self.part(&number.to_string(), wanted)?;
            if self.next_of(b",]")? == b']' {
                break;
            }
        }
        Some(())
    }

    /// A member's value or an item.
    fn part(&mut self, name: &str, wanted: &[&[String]]) -> Option<()> {
        let meant = wanted.iter().filter_map(|names| {
            let (first, rest) = names.split_first()?;
            (first == name || first == ANY).then_some(rest)
        });
        let meant: Vec<&[String]> = meant.collect();
        self.peek()?;
        let start = self.at;
        match meant.iter().any(|rest| rest.is_empty()) {
            true => {
                self.value(&[])?;
                self.hidden.push(start..self.at);
            }
            false => self.value(&meant)?,
        }
        Some(())
    }
}
