//! The members of a text that is one JSON object, each as it stands there.
//!
//! For readers of documents that are no CloudEvents. Names that come twice are shown twice; what that means is for the
//! reader to say, and so is what to do about a member that nobody expects. Nothing is collected here.

use std::borrow::Cow;

use super::scan::{DEPTH_MAX, Fault, Kind, Scanner};

/// What the value of a member is.
#[derive(Debug)]
pub(crate) enum MemberValue<'a> {
    Null,
    /// A string, without its quotes and escapes.
    Text(Cow<'a, str>),
    /// A number or a boolean.
    Scalar,
    /// An array or an object.
    Nested,
}

/// Shows every member: its name, what its value is, and the value byte for byte. A text that is `null` has none.
///
/// The error says in few words what was expected, and where.
pub(crate) fn read_object<'a>(
    text: &'a str,
    mut visit: impl FnMut(Cow<'a, str>, MemberValue<'a>, &'a str),
) -> Result<(), String> {
    let mut scanner = Scanner::new(text, DEPTH_MAX);
    if scanner.eat(b'{') {
        let mut going = !scanner.eat(b'}');
        while going {
            let name = scanner.name().map_err(in_words)?;
            let name = scanner.text(&name);
            let found = scanner.value().map_err(in_words)?;
            let value = match found.kind {
                Kind::Null => MemberValue::Null,
                Kind::Text { .. } => MemberValue::Text(scanner.text(&found)),
                Kind::Boolean(_) | Kind::Integer | Kind::Fraction => MemberValue::Scalar,
                Kind::Array | Kind::Object => MemberValue::Nested,
            };
            visit(name, value, scanner.raw(&found));
            going = !scanner.eat(b'}');
            if going {
                let expected = "a comma or the end of the object";
                scanner.expect(b',', expected).map_err(in_words)?;
            }
        }
    } else {
        let found = scanner.value().map_err(in_words)?;
        if found.kind != Kind::Null {
            return Err("expected an object".to_owned());
        }
    }
    scanner.end().map_err(in_words)
}

fn in_words(fault: Fault) -> String {
    match fault {
        Fault::Unexpected { at, expected } => format!("expected {expected} at byte {at}"),
        Fault::TooDeep { at } => format!("nested too deep at byte {at}"),
    }
}
