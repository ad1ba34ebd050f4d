//! Script as it is served: without the comments and the indentation that are for whoever reads it here. Pure.
//!
//! It is no minifier: it knows only comments that begin with `/**` and lines that begin with `//`, which is how ours are written,
//! and it relies on no text of the script having either in it and none going over the end of a line. Tests look for both.

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
    lines.flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_go_and_everything_else_stays() {
        let script = "// @ts-check\n/**\n * Says.\n * @param {string} what\n */\nexport function say(what) {\n  // Why.\n  const x = /** @type {any} */ (what);\n\n  return `a // ${x} /* b */`;\n}\n";
        assert_eq!(
            lean(script),
            "export function say(what) {\nconst x = (what);\nreturn `a // ${x} /* b */`;\n}\n"
        );
        assert_eq!(lean(""), "");
        assert_eq!(lean("a /** never ends"), "a\n");
    }
}
