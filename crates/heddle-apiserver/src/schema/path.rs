//! Where in an object a walk stands, kept on the stack and written out only when something is wrong there.

use std::fmt;

/// A path from the root of an object; links to its parent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path<'a> {
    parent: Option<&'a Self>,
    step: Step<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    pub(super) const ROOT: Path<'static> = Path {
        parent: None,
        step: Step::Root,
    };

    pub(super) fn field(&'a self, name: &'a str) -> Self {
        Self {
            parent: Some(self),
            step: Step::Field(name),
        }
    }

    /// The value of a map; shown as `[key]` where maps and objects are told apart.
    pub(super) fn key(&'a self, key: &'a str) -> Self {
        Self {
            parent: Some(self),
            step: Step::Key(key),
        }
    }

    pub(super) fn index(&'a self, index: usize) -> Self {
        Self {
            parent: Some(self),
            step: Step::Index(index),
        }
    }

    /// `spec.labels.app`: map keys written like fields, as schema validation does.
    pub(super) fn dotted(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, false);
        text
    }

    /// `spec.labels[app]`: map keys in brackets, as rules and list checks do; the root is `<nil>`.
    pub(super) fn bracketed(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, true);
        if text.is_empty() {
            text.push_str("<nil>");
        }
        text
    }

    fn write(&self, text: &mut String, brackets: bool) {
        if let Some(parent) = self.parent {
            parent.write(text, brackets);
        }
        match self.step {
            Step::Root => {}
            Step::Key(key) if brackets => {
                text.push('[');
                text.push_str(key);
                text.push(']');
            }
            Step::Field(name) | Step::Key(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            Step::Index(index) => {
                use fmt::Write as _;
                write!(text, "[{index}]").expect("writing to a string cannot fail");
            }
        }
    }
}
