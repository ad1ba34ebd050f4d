//! The attributes of a CloudEvent, as filters see them.
//!
//! Filters and CloudEvents SQL are decided on attributes alone, never on data. Whatever has attributes implements
//! [`Attributes`]; how an event is kept is its own affair.

/// The value of one attribute. URIs, timestamps and binary values are text in their canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    Text(&'a str),
    Integer(i32),
    Boolean(bool),
}

/// Something with CloudEvents attributes.
pub trait Attributes {
    /// The attribute with its type; `None` when the event does not have it.
    fn attribute(&self, name: &str) -> Option<Value<'_>>;

    /// The attribute in its canonical text form, which is what `exact`, `prefix` and `suffix` compare.
    fn text(&self, name: &str) -> Option<&str>;
}
