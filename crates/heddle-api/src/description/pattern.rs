//! Whether a text is a regular expression as JSON Schema understands them.
//!
//! Patterns are in ECMA's dialect, with looking ahead and back references, and are matched by whoever checks parameters.
//! Here only their structure is checked: groups and classes that close, repetitions that repeat something. That is what
//! authors get wrong, and it is the same in every engine.

/// The longest pattern that is taken; engines spend memory by length.
const PATTERN_BYTES_MAX: usize = 1024;
/// The most repetitions that may be asked for by number.
const REPEAT_MAX: u32 = 1000;

/// What is wrong with a pattern, if anything.
pub(super) fn check(pattern: &str) -> Result<(), &'static str> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err("it is longer than 1024 bytes");
    }
    let mut rest = pattern.chars().peekable();
    let mut groups = 0_u32;
    // Whether what stands before can be repeated.
    let mut atom = false;
    while let Some(character) = rest.next() {
        match character {
            '\\' => {
                rest.next().ok_or("it ends in a backslash")?;
                atom = true;
            }
            '[' => {
                class(&mut rest)?;
                atom = true;
            }
            '(' => {
                groups += 1;
                if rest.next_if_eq(&'?').is_some() {
                    group(&mut rest)?;
                }
                atom = false;
            }
            ')' => {
                groups = groups.checked_sub(1).ok_or("a ) closes nothing")?;
                atom = true;
            }
            '*' | '+' | '?' => {
                if !atom {
                    return Err("a repetition has nothing to repeat");
                }
                // At most one `?` more, which makes it a lazy one.
                rest.next_if_eq(&'?');
                atom = false;
            }
            '{' if is_count(rest.clone()) => {
                if !atom {
                    return Err("a repetition has nothing to repeat");
                }
                count(&mut rest)?;
                rest.next_if_eq(&'?');
                atom = false;
            }
            '|' | '^' => atom = false,
            _ => atom = true,
        }
    }
    if groups == 0 {
        Ok(())
    } else {
        Err("a ( is not closed")
    }
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// After `[`.
fn class(rest: &mut Rest<'_>) -> Result<(), &'static str> {
    rest.next_if_eq(&'^');
    // A bracket that comes first is one of the class in some dialects and ends it in others.
    if rest.peek() == Some(&']') {
        return Err("a class [] is empty");
    }
    loop {
        match rest.next().ok_or("a [ is not closed")? {
            '\\' => {
                rest.next().ok_or("it ends in a backslash")?;
            }
            ']' => return Ok(()),
            _ => {}
        }
    }
}

/// After `(?`.
fn group(rest: &mut Rest<'_>) -> Result<(), &'static str> {
    const UNKNOWN: &str = "a group begins with (? and an unknown sign";
    match rest.next().ok_or("a ( is not closed")? {
        ':' | '=' | '!' => Ok(()),
        '<' => {
            if rest.next_if(|next| matches!(next, '=' | '!')).is_some() {
                return Ok(());
            }
            let mut named = false;
            while rest
                .next_if(|next| next.is_alphanumeric() || *next == '_')
                .is_some()
            {
                named = true;
            }
            let closed = rest.next() == Some('>');
            if named && closed {
                Ok(())
            } else {
                Err(UNKNOWN)
            }
        }
        _ => Err(UNKNOWN),
    }
}

/// Whether what follows `{` is a number of repetitions; any other brace stands for itself.
fn is_count(mut rest: Rest<'_>) -> bool {
    let digits = |rest: &mut Rest<'_>| {
        let mut any = false;
        while rest.next_if(char::is_ascii_digit).is_some() {
            any = true;
        }
        any
    };
    if !digits(&mut rest) {
        return false;
    }
    if rest.next_if_eq(&',').is_some() {
        digits(&mut rest);
    }
    rest.next() == Some('}')
}

/// After `{`, of something that [`is_count`].
fn count(rest: &mut Rest<'_>) -> Result<(), &'static str> {
    let mut number = |end: &[char]| -> Result<(Option<u32>, char), &'static str> {
        let mut number = None::<u32>;
        loop {
            let next = rest.next().ok_or("a { is not closed")?;
            if end.contains(&next) {
                return Ok((number, next));
            }
            let digit = next.to_digit(10).unwrap_or_default();
            let more = number.unwrap_or(0).saturating_mul(10).saturating_add(digit);
            number = Some(more);
        }
    };
    let (least, end) = number(&[',', '}'])?;
    let most = if end == ',' { number(&['}'])?.0 } else { None };
    if least.max(most).is_some_and(|times| times > REPEAT_MAX) {
        return Err("it repeats more than 1000 times");
    }
    if least.zip(most).is_some_and(|(least, most)| least > most) {
        return Err("a repetition has a lower limit above its upper one");
    }
    Ok(())
}
