//! Patterns of a registry, looked at before anybody waits for them.
//!
//! Whoever reads the registry compiles them and has the last word. This finds what no compiler would take (an open group, a
//! star without anything before it, a range that runs backwards) and what the old broker's engine knew and ours does not,
//! so that a file is refused with its place instead of a registry that stays unread.

use super::node::Node;
use crate::failure::Failure;

/// A list of patterns, each of which could be one.
pub(super) fn all(node: &Node, at: &str) -> Result<Vec<String>, Failure> {
    for (index, item) in node.items(at)?.iter().enumerate() {
        let text = item.filled_text(&format!("{at}[{index}]"))?;
        check(&text).map_err(|why| {
            item.fail(&format!(
                "{at}[{index}]: `{text}` is no regular expression: {why}"
            ))
        })?;
    }
    node.texts(at)
}

/// Whether a text can be a regular expression; why not, if not.
pub(crate) fn check(pattern: &str) -> Result<(), String> {
    let mut scan = Scan {
        rest: pattern.chars().collect::<Vec<_>>(),
        at: 0,
    };
    scan.alternatives(0)
}

/// Deeper groups are no pattern that a person wrote.
const DEPTH_MAX: usize = 100;

struct Scan {
    rest: Vec<char>,
    at: usize,
}

impl Scan {
    fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let found = self.peek();
        self.at += usize::from(found.is_some());
        found
    }

    fn takes(&mut self, text: &str) -> bool {
        let fits = self.rest[self.at..]
            .iter()
            .copied()
            .take(text.len())
            .eq(text.chars());
        if fits {
            self.at += text.len();
        }
        fits
    }

    /// Everything up to the end of the pattern, or of the group that is open.
    fn alternatives(&mut self, depth: usize) -> Result<(), String> {
        if depth > DEPTH_MAX {
            return Err("its groups are nested too deeply".to_owned());
        }
        // Whether there is something that a star could repeat.
        let mut repeatable = false;
        while let Some(c) = self.next() {
            match c {
                '(' => {
                    // `(?i)` changes what follows, and is nothing that could be repeated.
                    repeatable = self.group(depth)?;
                }
                ')' if depth > 0 => return Ok(()),
                ')' => return Err("a group is closed that was never opened".to_owned()),
                '[' => {
                    self.class(depth)?;
                    repeatable = true;
                }
                '*' | '+' | '?' | '{' if !repeatable => {
                    return Err(format!("`{c}` has nothing before it to repeat"));
                }
                '{' => self.count()?,
                // A second one makes the first lazy or repeats what it stands for.
                '*' | '+' | '?' => {}
                '\\' => {
                    self.escape()?;
                    repeatable = true;
                }
                '|' => repeatable = false,
                _ => repeatable = true,
            }
        }
        match depth {
            0 => Ok(()),
            _ => Err("a group is opened and never closed".to_owned()),
        }
    }

    /// After `(`. Answers whether what it was can be repeated.
    fn group(&mut self, depth: usize) -> Result<bool, String> {
        if self.takes("?") {
            for look in ["=", "!", "<=", "<!"] {
                if self.takes(look) {
                    return Err("looking ahead or behind is not supported".to_owned());
                }
            }
            if self.takes("P<") || self.takes("<") {
                self.name()?;
            } else {
                while let Some(c) = self.next() {
                    match c {
                        ':' => break,
                        ')' => return Ok(false),
                        'i' | 'm' | 's' | 'R' | 'U' | 'u' | 'x' | '-' => {}
                        c => return Err(format!("`(?{c}` is unknown")),
                    }
                }
            }
        }
        self.alternatives(depth + 1)?;
        Ok(true)
    }

    fn name(&mut self) -> Result<(), String> {
        let mut length = 0;
        while let Some(c) = self.next() {
            match c {
                '>' if length > 0 => return Ok(()),
                c if c.is_alphanumeric() || matches!(c, '_' | '.' | '[' | ']') => length += 1,
                _ => break,
            }
        }
        Err("the name of a group is not valid".to_owned())
    }

    /// After `{`: `3}`, `3,}`, `3,5}` or `,5}`.
    fn count(&mut self) -> Result<(), String> {
        let mut text = String::new();
        loop {
            match self.next() {
                Some('}') => break,
                Some(c) if c.is_ascii_digit() || c == ',' => text.push(c),
                Some(' ') => {}
                _ => return Err("`{` must be followed by a count, as in `{2,3}`".to_owned()),
            }
        }
        let (low, high) = text.split_once(',').unwrap_or((&text, &text));
        let number = |text: &str| text.parse::<u32>().ok();
        match (number(low), number(high)) {
            (Some(low), Some(high)) if low > high => {
                Err(format!("`{{{low},{high}}}` counts backwards"))
            }
            (None, None) => Err("`{` must be followed by a count, as in `{2,3}`".to_owned()),
            _ => Ok(()),
        }
    }

    /// After `[`.
    fn class(&mut self, depth: usize) -> Result<(), String> {
        if depth > DEPTH_MAX {
            return Err("its classes are nested too deeply".to_owned());
        }
        self.takes("^");
        // What could begin a range, and whether there is anything yet: a bracket at the front stands for itself.
        let (mut before, mut empty) = (None, true);
        while let Some(c) = self.next() {
            let item = match c {
                ']' if !empty => return Ok(()),
                '[' if self.takes(":") => {
                    let end = self.rest[self.at..]
                        .windows(2)
                        .position(|pair| pair == [':', ']']);
                    let end = end.ok_or("`[:` is not closed by `:]`")?;
                    self.at += end + 2;
                    None
                }
                '[' => {
                    self.class(depth + 1)?;
                    None
                }
                '\\' => self.escape()?,
                '-' if before.is_some() && !matches!(self.peek(), Some(']' | '-')) => {
                    let from: char = before.take().unwrap_or_default();
                    let to = match self.next() {
                        Some('\\') => self.escape()?,
                        other => other,
                    };
                    match to {
                        Some(to) if to < from => {
                            return Err(format!("`{from}-{to}` runs backwards"));
                        }
                        _ => None,
                    }
                }
                c => Some(c),
            };
            (before, empty) = (item, false);
        }
        Err("`[` is opened and never closed".to_owned())
    }

    /// After `\`. Answers the character it stands for, where it is one.
    fn escape(&mut self) -> Result<Option<char>, String> {
        match self.next() {
            None => Err("`\\` at its end escapes nothing".to_owned()),
            Some('0'..='9') => Err("going back to an earlier group is not supported".to_owned()),
            Some('p' | 'P' | 'x' | 'u' | 'U') => {
                if self.takes("{") {
                    let end = self.rest[self.at..].iter().position(|c| *c == '}');
                    self.at += end.ok_or("`{` after an escape is never closed")? + 1;
                }
                Ok(None)
            }
            Some('a' | 'f' | 't' | 'n' | 'r' | 'v') => Ok(None),
            Some('d' | 'D' | 's' | 'S' | 'w' | 'W' | 'b' | 'B' | 'A' | 'z' | '<' | '>') => Ok(None),
            Some(c) if c.is_alphabetic() => Err(format!("`\\{c}` is unknown")),
            Some(c) => Ok(Some(c)),
        }
    }
}
