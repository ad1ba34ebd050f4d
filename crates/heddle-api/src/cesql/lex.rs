//! Text to tokens. Whether the tokens make sense together is left to the parser.

use super::ParseError;

/// One token and where it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) position: usize,
    pub(super) kind: Kind<'a>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    /// Letters, digits and underscores, not digits alone: keyword, attribute or function.
    Word(&'a str),
    /// Digits, without a sign.
    Digits(&'a str),
    /// A literal, with its quotes gone and the escaped ones resolved.
    Text(String),
    /// An operator, bracket or comma.
    Symbol(&'static str),
}

/// Longer ones first, so that `<=` is not `<`.
const SYMBOLS: &[&str] = &[
    "!=", "<>", "<=", ">=", "=", "<", ">", "(", ")", ",", "+", "-", "*", "/", "%",
];

pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, ParseError> {
    let mut tokens = Vec::new();
    let mut position = 0;
    while let Some(first) = text[position..].chars().next() {
        let rest = &text[position..];
        let (kind, length) = match first {
            ' ' | '\t' | '\r' | '\n' => {
                position += 1;
                continue;
            }
            '\'' | '"' => quoted(rest, first).ok_or_else(|| ParseError {
                position,
                message: format!("the text that starts with {first} does not end"),
            })?,
            _ if is_word(first) => word(rest),
            _ => symbol(rest).ok_or_else(|| ParseError {
                position,
                message: format!("{first:?} has no meaning here"),
            })?,
        };
        tokens.push(Token { position, kind });
        position += length;
    }
    Ok(tokens)
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

fn word(rest: &str) -> (Kind<'_>, usize) {
    let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
    let word = &rest[..length];
    let kind = if word.bytes().all(|byte| byte.is_ascii_digit()) {
        Kind::Digits(word)
    } else {
        Kind::Word(word)
    };
    (kind, length)
}

fn symbol(rest: &str) -> Option<(Kind<'static>, usize)> {
    let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol))?;
    Some((Kind::Symbol(symbol), symbol.len()))
}

/// The quote itself is written `\'` or `''`; any other backslash stays, for it may mean something to a `LIKE`.
fn quoted(rest: &str, quote: char) -> Option<(Kind<'static>, usize)> {
    let mut content = String::new();
    let mut characters = rest.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if character == quote {
            if characters.next_if(|(_, next)| *next == quote).is_none() {
                return Some((Kind::Text(content), at + 1));
            }
            content.push(quote);
        } else if character == '\\' {
            let (_, escaped) = characters.next()?;
            if escaped != quote {
                content.push('\\');
            }
            content.push(escaped);
        } else {
            content.push(character);
        }
    }
    None
}
