//! Script, style and picture, as they lie in the binary: below an address that changes with their content, so that a browser
//! may keep them for ever.

mod lean;

use std::io::Write as _;
use std::sync::OnceLock;

use axum::response::{IntoResponse as _, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderValue, StatusCode, header};
use sha2::{Digest as _, Sha256};

/// One file.
#[derive(Debug)]
struct Asset {
    name: &'static str,
    kind: &'static str,
    content: &'static [u8],
}

impl Asset {
    fn served(&self) -> Vec<u8> {
        match std::str::from_utf8(self.content) {
            Ok(text) if self.name.ends_with(".js") => lean::lean(text).into_bytes(),
            _ => self.content.to_vec(),
        }
    }
}

macro_rules! asset {
    ($name:literal, $kind:literal) => {
        Asset {
            name: $name,
            kind: $kind,
            content: include_bytes!(concat!("../assets/", $name)),
        }
    };
}

const FILES: [Asset; 10] = [
    asset!("main.js", "text/javascript; charset=utf-8"),
    asset!("acts.js", "text/javascript; charset=utf-8"),
    asset!("forms.js", "text/javascript; charset=utf-8"),
    asset!("live.js", "text/javascript; charset=utf-8"),
    asset!("swap.js", "text/javascript; charset=utf-8"),
    asset!("keys.js", "text/javascript; charset=utf-8"),
    asset!("tail.js", "text/javascript; charset=utf-8"),
    asset!("try.js", "text/javascript; charset=utf-8"),
    asset!("style.css", "text/css; charset=utf-8"),
    asset!("icon.svg", "image/svg+xml"),
];

const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// What the address of the files changes with.
pub(crate) fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let mut hasher = Sha256::new();
        for file in &FILES {
            hasher.update(file.name);
            hasher.update(file.content);
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
    let found = FILES.iter().position(|file| file.name == name);
    let Some(index) = found.filter(|_| asked_version == version()) else {
        return (StatusCode::NOT_FOUND, "there is no such file").into_response();
    };
    let file = &FILES[index];
    let content = match gzip {
        true => compressed()[index].as_slice(),
        false => served()[index].as_slice(),
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

/// All files as browsers get them.
fn served() -> &'static [Vec<u8>] {
    static SERVED: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    SERVED.get_or_init(|| FILES.iter().map(Asset::served).collect())
}

/// The same, made small once.
fn compressed() -> &'static [Vec<u8>] {
    static COMPRESSED: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    COMPRESSED.get_or_init(|| served().iter().map(|content| compress(content)).collect())
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

    fn size(ending: &str) -> usize {
        let files = FILES.iter().filter(|file| file.name.ends_with(ending));
        files.map(|file| file.served().len()).sum()
    }

    /// What a first visit loads besides the page itself stays small enough for a bad line.
    #[test]
    fn script_and_style_stay_within_their_budgets() {
        let (script, style) = (size(".js"), size(".css"));
        let small: usize = compressed().iter().map(Vec::len).sum();
        println!("script {script} B, style {style} B, all files {small} B compressed");
        assert!(script <= 40_000, "the script has {script} bytes");
        assert!(style <= 30_000, "the style has {style} bytes");
        assert!(small <= 25_000, "all files have {small} bytes compressed");
    }

    /// What leaving out comments relies on.
    #[test]
    fn no_text_of_the_script_looks_like_a_comment_or_goes_over_a_line() {
        for file in FILES.iter().filter(|file| file.name.ends_with(".js")) {
            let text = std::str::from_utf8(file.content).unwrap();
            let served = String::from_utf8(file.served()).unwrap();
            assert!(
                !served.contains("/**") && !served.contains("\n//"),
                "{}",
                file.name
            );
            for line in text.lines() {
                assert_eq!(line.matches('`').count() % 2, 0, "{}: {line}", file.name);
                let comments = line.matches("/**").count();
                let begins = line.trim_start().starts_with("/**");
                assert!(
                    comments == 0 || begins || line.contains("*/"),
                    "{}: {line}",
                    file.name
                );
            }
        }
    }

    #[test]
    fn nothing_is_fetched_from_elsewhere() {
        for file in &FILES {
            let text = String::from_utf8_lossy(file.content);
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
