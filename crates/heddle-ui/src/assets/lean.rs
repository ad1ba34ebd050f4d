//! Script as it is served: without the comments, the indentation and the spaces that are for whoever reads it here. Pure.
//!
//! It is no minifier: it knows only comments that begin with `/**` and lines that begin with `//`, which is how ours are written,
//! and it relies on no text of the script having either in it and none going over the end of a line. Tests look for both.
//! Lines in which a space could mean something else than it seems, in a template or a regular expression, stay as they are.

/// What needs no space around it, wherever it stands outside of a text.
const TIGHT: [&str; 23] = [
    " = ", " => ", ", ", " === ", " !== ", " && ", " || ", " ?? ", " ? ", " + ", "; ", ": ", " {",
    "{ ", " }", "} ", " < ", " > ", " (", ") ", " [", "] ", " :",
];
/// Where a space keeps apart what would mean something else together.
const APART: [&str; 2] = ["? .", "+ +"];

/// The same script with less in it.
pub(super) fn lean(script: &str) -> String {
    let mut code = String::with_capacity(script.len());
    let mut rest = script;
    while let Some((before, after)) = rest.split_once("/**") {
        code.push_str(before);
        let end = after.find("*/").map_or(after.len(), |end| end + 2);
        let behind = &after[end..];
        rest = behind.strip_prefix(' ').unwrap_or(behind);
    }
    code.push_str(rest);
    let lines = code.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines
        .flat_map(|line| [tight(line), "\n".to_owned()])
        .collect()
}

/// A line without the spaces that only people need.
fn tight(line: &str) -> String {
    let parts: Vec<&str> = line.split('"').collect();
    // Every other part is a text, unless quotes are no quotes here.
    let is_plain = !line.contains(['`', '\'', '/', '\\']) && !parts.len().is_multiple_of(2);
    if !is_plain || APART.iter().any(|apart| line.contains(apart)) {
        return line.to_owned();
    }
    let is_text = |at: usize| at % 2 == 1;
    let parts = parts.into_iter().enumerate().map(|(at, part)| {
        let mut part = part.to_owned();
        for token in TIGHT.iter().filter(|_| !is_text(at)) {
            part = part.replace(token, token.trim());
        }
        part
    });
    parts.collect::<Vec<_>>().join("\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_go_and_everything_else_stays() {
        let script = "// @ts-check\n/**\n * Says.\n * @param {string} what\n */\nexport function say(what) {\n  // Why.\n  const x = /** @type {any} */ (what);\n\n  return `a // ${x} /* b */`;\n}\n";
        assert_eq!(
            lean(script),
            "export function say(what){\nconst x=(what);\nreturn `a // ${x} /* b */`;\n}\n"
        );
        assert_eq!(lean(""), "");
        assert_eq!(lean("a /** never ends"), "a\n");
    }

    #[test]
    fn texts_templates_and_regular_expressions_keep_their_spaces() {
        for (line, served) in [
            ("say(\"a, b = c\", { d: 1 });", "say(\"a, b = c\",{d:1});"),
            ("if (a === b && c) {", "if(a===b&&c){"),
            ("return a ? [b] : (c + d);", "return a?[b]:(c+d);"),
            ("x = a ? .5 : 1;", "x = a ? .5 : 1;"),
            ("x = `a, ${b}`;", "x = `a, ${b}`;"),
            ("x = y.split(/, /);", "x = y.split(/, /);"),
            ("x = \"a\\\", b\";", "x = \"a\\\", b\";"),
        ] {
            assert_eq!(tight(line), served);
        }
    }
}
