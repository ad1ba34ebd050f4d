//! A scanner for JSON that finds where things are and makes nothing of them.
//!
//! It takes exactly the texts of RFC 8259, and of those only the ones that every reader understands alike: half of a
//! surrogate pair is refused. It goes over the text once, from left to right, in a loop instead of by recursion; what it
//! remembers is one bit for each level of nesting. Text that was escaped is unescaped when somebody asks for it.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

/// Bits for levels of nesting, and thereby the deepest that can be read.
const NESTING_WORDS: usize = 4;
pub(super) const DEPTH_MAX: usize = NESTING_WORDS * 64;

/// Bytes at which the run of ordinary characters in a string ends.
const STOPS: [bool; 256] = {
    let mut stops = [false; 256];
    let mut control = 0;
    while control < 0x20 {
        stops[control] = true;
        control += 1;
    }
    stops[b'"' as usize] = true;
    stops[b'\\' as usize] = true;
    stops
};

/// Where a text stops being what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Unexpected { at: usize, expected: &'static str },
    TooDeep { at: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Boolean(bool),
    /// A number without fraction and exponent, of any size.
    Integer,
    Fraction,
    Text {
        escaped: bool,
    },
    Array,
    Object,
}

/// A value: what it is and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) kind: Kind,
    pub(super) range: Range<usize>,
}

#[derive(Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    depth_max: usize,
}

/// Whether the whole text is one value.
pub(super) fn is_value(text: &str, depth_max: usize) -> bool {
    let mut scanner = Scanner::new(text, depth_max);
    scanner.value().is_ok() && scanner.end().is_ok()
}

impl<'a> Scanner<'a> {
    /// Begins behind leading white space. Values may be nested `depth_max` deep, each for itself.
    pub(super) fn new(text: &'a str, depth_max: usize) -> Self {
        let mut scanner = Self {
            text,
            at: 0,
            depth_max: depth_max.min(DEPTH_MAX),
        };
        scanner.space();
        scanner
    }

    /// Goes past `byte` and the white space behind it, if it is here.
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let here = self.peek() == Some(byte);
        if here {
            self.at += 1;
            self.space();
        }
        here
    }

    /// Goes past `byte` and the white space behind it, which has to be here.
    pub(super) fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), Fault> {
        if self.eat(byte) {
            Ok(())
        } else {
            Err(self.unexpected(expected))
        }
    }

    /// Nothing may follow.
    pub(super) fn end(&self) -> Result<(), Fault> {
        if self.at == self.text.len() {
            Ok(())
        } else {
            Err(self.unexpected("nothing more"))
        }
    }

    /// The name of a member, and the colon behind it.
    pub(super) fn name(&mut self) -> Result<Found, Fault> {
        let start = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("a name in double quotes"));
        }
        let escaped = self.string()?;
        let range = start..self.at;
        self.space();
        self.expect(b':', "a colon")?;
        let kind = Kind::Text { escaped };
        Ok(Found { kind, range })
    }

    /// The next value, whatever it is, and the white space behind it.
    pub(super) fn value(&mut self) -> Result<Found, Fault> {
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => {
                self.nested()?;
                Kind::Object
            }
            Some(b'[') => {
                self.nested()?;
                Kind::Array
            }
            _ => self.scalar()?,
        };
        let range = start..self.at;
        self.space();
        Ok(Found { kind, range })
    }

    /// The text of a value as it was written.
    pub(super) fn raw(&self, found: &Found) -> &'a str {
        &self.text[found.range.clone()]
    }

    /// The content of a string, borrowed unless it was escaped.
    pub(super) fn text(&self, found: &Found) -> Cow<'a, str> {
        let inner = &self.text[found.range.start + 1..found.range.end - 1];
        match found.kind {
            Kind::Text { escaped: true } => Cow::Owned(unescape(inner)),
            _ => Cow::Borrowed(inner),
        }
    }

    /// An array or an object and everything in it.
    fn nested(&mut self) -> Result<(), Fault> {
        let mut nesting = Nesting::default();
        loop {
            // Here a value begins.
            match self.peek() {
                Some(open @ (b'{' | b'[')) => {
                    if nesting.depth == self.depth_max {
                        return Err(Fault::TooDeep { at: self.at });
                    }
                    nesting.push(open == b'{');
                    self.at += 1;
                    self.space();
                    if self.peek() != Some(nesting.closing()) {
                        if nesting.in_object() {
                            self.name()?;
                        }
                        continue;
                    }
                }
                _ => {
                    self.scalar()?;
                    self.space();
                }
            }
            // Here one has ended, or an empty array or object is about to.
            while self.peek() == Some(nesting.closing()) {
                self.at += 1;
                nesting.depth -= 1;
                if nesting.depth == 0 {
                    return Ok(());
                }
                self.space();
            }
            self.expect(b',', "a comma or the end of what is open")?;
            if nesting.in_object() {
                self.name()?;
            }
        }
    }

    fn scalar(&mut self) -> Result<Kind, Fault> {
        match self.peek() {
            Some(b'"') => Ok(Kind::Text {
                escaped: self.string()?,
            }),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true", Kind::Boolean(true)),
            Some(b'f') => self.literal("false", Kind::Boolean(false)),
            Some(b'n') => self.literal("null", Kind::Null),
            _ => Err(self.unexpected("a value")),
        }
    }

    fn literal(&mut self, word: &'static str, kind: Kind) -> Result<Kind, Fault> {
        if !self.bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.unexpected(word));
        }
        self.at += word.len();
        Ok(kind)
    }

    fn number(&mut self) -> Result<Kind, Fault> {
        let mut kind = Kind::Integer;
        self.skip(b"-");
        if !self.skip(b"0") {
            self.digits()?;
        }
        if self.skip(b".") {
            kind = Kind::Fraction;
            self.digits()?;
        }
        if self.skip(b"eE") {
            kind = Kind::Fraction;
            self.skip(b"+-");
            self.digits()?;
        }
        Ok(kind)
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at > start {
            Ok(())
        } else {
            Err(self.unexpected("a digit"))
        }
    }

    /// Goes past one byte if it is one of these.
    fn skip(&mut self, any_of: &[u8]) -> bool {
        let here = self.peek().is_some_and(|byte| any_of.contains(&byte));
        self.at += usize::from(here);
        here
    }

    /// From the opening quote to behind the closing one. Tells whether anything in between is escaped.
    fn string(&mut self) -> Result<bool, Fault> {
        self.at += 1;
        let mut escaped = false;
        loop {
            let rest = &self.bytes()[self.at..];
            let run = rest.iter().position(|byte| STOPS[usize::from(*byte)]);
            self.at += run.unwrap_or(rest.len());
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => return Err(self.unexpected("an escaped control character")),
                None => return Err(self.unexpected("a closing quote")),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Fault> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => match self.unit()? {
                0xd800..=0xdbff => {
                    let paired = self.bytes()[self.at..].starts_with(b"\\u");
                    self.at += usize::from(paired);
                    if !paired || !matches!(self.unit()?, 0xdc00..=0xdfff) {
                        return Err(
                            self.unexpected("the other half of a surrogate pair before this")
                        );
                    }
                }
                0xdc00..=0xdfff => {
                    return Err(self.unexpected("the first half of a surrogate pair before this"));
                }
                _ => {}
            },
            _ => return Err(self.unexpected("an escape")),
        }
        Ok(())
    }

    /// The `u` and four digits of an escape.
    fn unit(&mut self) -> Result<u16, Fault> {
        self.at += 1;
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let digit = digit.ok_or_else(|| self.unexpected("a hexadecimal digit"))?;
            unit = unit << 4 | u16::try_from(digit).expect("a digit is less than sixteen");
            self.at += 1;
        }
        Ok(unit)
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes().get(self.at).copied()
    }

    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    pub(super) fn unexpected(&self, expected: &'static str) -> Fault {
        Fault::Unexpected {
            at: self.at,
            expected,
        }
    }
}

/// What is open, the innermost last: a set bit is an object.
#[derive(Default)]
struct Nesting {
    objects: [u64; NESTING_WORDS],
    depth: usize,
}

impl Nesting {
    fn push(&mut self, object: bool) {
        let (word, bit) = (self.depth / 64, self.depth % 64);
        self.objects[word] = self.objects[word] & !(1 << bit) | u64::from(object) << bit;
        self.depth += 1;
    }

    fn in_object(&self) -> bool {
        let last = self.depth - 1;
        self.objects[last / 64] >> (last % 64) & 1 == 1
    }

    fn closing(&self) -> u8 {
        if self.in_object() { b'}' } else { b']' }
    }
}

/// Undoes the escapes of a string that was scanned before.
fn unescape(inner: &str) -> String {
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let escape = rest.as_bytes()[at + 1];
        rest = &rest[at + 2..];
        text.push(match escape {
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => code_point(&mut rest),
            other => char::from(other),
        });
    }
    text.push_str(rest);
    text
}

/// The character whose four digits, or twice four, come next.
fn code_point(rest: &mut &str) -> char {
    let mut unit = |skip: usize| {
        let digits = &rest[skip..skip + 4];
        *rest = &rest[skip + 4..];
        u32::from_str_radix(digits, 16).expect("the scanner has seen four digits")
    };
    let first = unit(0);
    let point = match first {
        0xd800..=0xdbff => 0x10000 + ((first - 0xd800) << 10) + (unit(2) - 0xdc00),
        _ => first,
    };
    char::from_u32(point).expect("the scanner has seen the whole pair")
}
