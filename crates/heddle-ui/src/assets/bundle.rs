//! The parts of the script as one file: browsers ask for it once, and people read it in parts. Pure.
//!
//! Each part keeps a scope of its own, as it has as a module; what it exports is handed to those that come after it.
//! ```text
//!   import { ask } from "./swap.js";     const{ask}=$swap;
//!   import * as acts from "./acts.js";   const acts=$acts;
//!   export function start() { … }        function start() { … }      and at its end     return{start};
//! ```
//! It is no bundler: it knows imports and exports that stand alone in a line, which is how ours are written, and parts that
//! import only what comes before them. Tests look for both.

use super::lean::lean;

/// One part: its name without an ending, and what is in it.
pub(super) type ScriptPart = (&'static str, &'static str);

/// All parts, in the order in which they are needed.
pub(super) fn bundle(parts: &[ScriptPart]) -> String {
    let scoped = parts.iter().map(|(name, text)| scoped(name, text));
    let lines: String = scoped.collect();
    // No text goes over the end of a line, and behind these a line that ends says nothing.
    [";", "{", ","].into_iter().fold(lines, |lines, end| {
        let ended = format!("{end}\n");
        lines.replace(&ended, end)
    })
}

fn scoped(name: &str, text: &str) -> String {
    let mut exported: Vec<&str> = Vec::new();
    let mut body = String::with_capacity(text.len());
    let lean = lean(text);
    for line in lean.lines() {
        if let Some(import) = line.strip_prefix("import ") {
            body.push_str(&imported(import));
        } else if let Some(declared) = line.strip_prefix("export ") {
            exported.extend(declared_name(declared));
            body.push_str(declared);
        } else {
            body.push_str(line);
        }
        body.push('\n');
    }
    let given = match exported.is_empty() {
        true => String::new(),
        false => format!("return{{{}}};\n", exported.join(",")),
    };
    format!("const ${name}=(()=>{{\n{body}{given}}})();\n")
}

/// `{ ask, load } from "./swap.js";` as what takes the same from a part that has run.
fn imported(import: &str) -> String {
    let (names, from) = import.split_once(" from ").unwrap_or((import, ""));
    let part = from.trim_matches(|letter| !char::is_alphanumeric(letter));
    let part = part.trim_end_matches(".js");
    let names = names.strip_prefix("* as ").unwrap_or(names);
    let names: String = names.split_whitespace().collect();
    format!("const {names}=${part};")
}

/// The name in `async function open(address) {` and in `const base = …`.
fn declared_name(declared: &str) -> Option<&str> {
    let rest = declared.strip_prefix("async ").unwrap_or(declared);
    let rest = ["function ", "const "]
        .into_iter()
        .find_map(|word| rest.strip_prefix(word))?;
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_')?;
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_become_one_script_and_keep_their_scopes() {
        let parts = [
            (
                "a",
                "// @ts-check\nexport const base = 1;\nexport async function ask(x) {\n  return x;\n}\nlet own = 2;\n",
            ),
            (
                "b",
                "import { ask, base } from \"./a.js\";\nimport * as all from \"./a.js\";\nask(base, all);\n",
            ),
        ];
        assert_eq!(
            bundle(&parts),
            "const $a=(()=>{const base=1;async function ask(x){return x;}\nlet own=2;return{base,ask};})();\
             const $b=(()=>{const {ask,base}=$a;const all=$a;ask(base,all);})();"
        );
    }
}
