//! Script, style and picture, as they lie in the binary: below an address that changes with their content, so that a browser
//! may keep them for ever. The script is kept in parts and served as one file.

mod bundle;
mod lean;

use std::io::Write as _;
use std::sync::OnceLock;

use axum::response::{IntoResponse as _, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderValue, StatusCode, header};
use sha2::{Digest as _, Sha256};

use self::bundle::ScriptPart;

/// One file.
#[derive(Debug)]
struct Asset {
    name: &'static str,
    kind: &'static str,
    content: Vec<u8>,
}

macro_rules! part {
    ($name:literal) => {
        ($name, include_str!(concat!("../assets/", $name, ".js")))
    };
}

/// The script, in the order in which its parts need each other.
const PARTS: [ScriptPart; 9] = [
    part!("swap"),
    part!("forms"),
    part!("acts"),
    part!("live"),
    part!("keys"),
    part!("tail"),
    part!("try"),
    part!("stay"),
    part!("main"),
];

pub(crate) const SCRIPT: &str = "main.js";
pub(crate) const STYLE: &str = "style.css";
pub(crate) const ICON: &str = "icon.svg";

/// All files as browsers get them.
fn files() -> &'static [Asset; 3] {
    static FILES: OnceLock<[Asset; 3]> = OnceLock::new();
    FILES.get_or_init(|| {
        [
            Asset {
                name: SCRIPT,
                kind: "text/javascript; charset=utf-8",
                content: bundle::bundle(&PARTS).into_bytes(),
            },
            Asset {
                name: STYLE,
                kind: "text/css; charset=utf-8",
                content: include_bytes!("../assets/style.css").to_vec(),
            },
            Asset {
                name: ICON,
                kind: "image/svg+xml",
                content: include_bytes!("../assets/icon.svg").to_vec(),
            },
        ]
    })
}

const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// What the address of the files changes with.
pub(crate) fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let mut hasher = Sha256::new();
        for file in files() {
            hasher.update(file.name);
            hasher.update(&file.content);
        }
        let digest = hasher.finalize();
        digest[..6]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    })
}

/// Where a file is, below `/ui/`.
pub(crate) fn path(name: &str) -> String {
    format!("a/{}/{name}", version())
}

/// A file, if there is one of that name and of this content.
pub(crate) fn serve(asked_version: &str, name: &str, gzip: bool) -> Response {
    let found = files().iter().position(|file| file.name == name);
    let Some(index) = found.filter(|_| asked_version == version()) else {
        return (StatusCode::NOT_FOUND, "there is no such file").into_response();
    };
    let file = &files()[index];
    let content = match gzip {
        true => compressed()[index].as_slice(),
        false => file.content.as_slice(),
    };
    let mut response = content.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(FOR_EVER));
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    if gzip {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// All files, made small once.
fn compressed() -> &'static [Vec<u8>] {
    static COMPRESSED: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    COMPRESSED.get_or_init(|| files().iter().map(|file| compress(&file.content)).collect())
}

/// Text made small.
pub(crate) fn compress(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(content).and_then(|()| encoder.finish());
    written.expect("memory takes all that is written to it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(name: &str) -> usize {
        let file = files().iter().find(|file| file.name == name);
        file.unwrap().content.len()
    }

    /// What a first visit loads besides the page itself stays small enough for a bad line.
    #[test]
    fn script_and_style_stay_within_their_budgets() {
        let (script, style) = (size(SCRIPT), size(STYLE));
        let small: usize = compressed().iter().map(Vec::len).sum();
        println!("script {script} B, style {style} B, all files {small} B compressed");
        assert!(script <= 40_000, "the script has {script} bytes");
        assert!(style <= 30_000, "the style has {style} bytes");
        assert!(small <= 25_000, "all files have {small} bytes compressed");
    }

    /// What leaving out comments relies on.
    #[test]
    fn no_text_of_the_script_looks_like_a_comment_or_goes_over_a_line() {
        let served = bundle::bundle(&PARTS);
        assert!(!served.contains("/**") && !served.contains("\n//"));
        for (name, text) in PARTS {
            for line in text.lines() {
                assert_eq!(line.matches('`').count() % 2, 0, "{name}: {line}");
                let comments = line.matches("/**").count();
                let begins = line.trim_start().starts_with("/**");
                assert!(
                    comments == 0 || begins || line.contains("*/"),
                    "{name}: {line}"
                );
            }
        }
    }

    /// What putting the parts together relies on.
    #[test]
    fn a_part_of_the_script_takes_only_from_those_before_it_and_says_so_in_one_line() {
        for (at, (name, text)) in PARTS.iter().enumerate() {
            for line in text.lines().filter(|line| line.starts_with("import")) {
                let known = PARTS[..at].iter().map(|(before, _)| *before);
                let mut known = known.map(|before| format!(" from \"./{before}.js\";"));
                assert!(known.any(|from| line.ends_with(&from)), "{name}: {line}");
            }
            for line in text.lines().filter(|line| line.starts_with("export")) {
                let kinds = [
                    "export const ",
                    "export function ",
                    "export async function ",
                ];
                assert!(
                    kinds.iter().any(|kind| line.starts_with(kind)),
                    "{name}: {line}"
                );
            }
        }
        let served = bundle::bundle(&PARTS);
        assert!(!served.contains("import ") && !served.contains("export "));
    }

    #[test]
    fn nothing_is_fetched_from_elsewhere() {
        for file in files() {
            let text = String::from_utf8_lossy(&file.content);
            let text = text.replace("http://www.w3.org/2000/svg", "");
            for scheme in ["http://", "https://", "//cdn"] {
                assert!(!text.contains(scheme), "{} has {scheme}", file.name);
            }
        }
    }

    #[test]
    fn only_the_content_that_was_asked_for_is_served() {
        assert_eq!(serve(version(), "main.js", false).status(), StatusCode::OK);
        assert_eq!(
            serve("000000000000", "main.js", false).status(),
            StatusCode::NOT_FOUND
        );
        assert_eq!(
            serve(version(), "other.js", false).status(),
            StatusCode::NOT_FOUND
        );
        assert_eq!(
            serve(version(), "../Cargo.toml", false).status(),
            StatusCode::NOT_FOUND
        );
    }
}
