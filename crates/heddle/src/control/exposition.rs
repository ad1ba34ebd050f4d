//! One set of numbers in the two formats that Prometheus reads.
//!
//! The parts write OpenMetrics. Whoever does not ask for that gets the older text format, 0.0.4, which differs where it
//! matters: a counter is called by the name of its sample, with `_total`, and there are no units, no end mark and no
//! `_created`. What is not understood is passed on as it is.

use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderValue, header};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The numbers in the format that is asked for.
pub(super) fn respond(headers: &HeaderMap, open_metrics: String) -> Response {
    let (kind, text) = if prefers_open_metrics(headers) {
        (OPEN_METRICS, open_metrics)
    } else {
        (CLASSIC, classic(&open_metrics))
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::VARY, HeaderValue::from_static("Accept")),
    ];
    (headers, text).into_response()
}

/// Whether OpenMetrics is welcome, and no less than plain text. Without a wish plain text is what every reader reads.
fn prefers_open_metrics(headers: &HeaderMap) -> bool {
    let (mut open, mut plain) = (0.0_f32, 0.0_f32);
    for value in headers.get_all(header::ACCEPT) {
        for range in value.to_str().unwrap_or_default().split(',') {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default().to_ascii_lowercase();
            let weight = parts.find_map(|part| part.strip_prefix("q="));
            let weight = weight.map_or(1.0, |text| text.parse().unwrap_or(0.0));
            match media.as_str() {
                "application/openmetrics-text" => open = open.max(weight),
                "text/plain" | "text/*" => plain = plain.max(weight),
                _ => {}
            }
        }
    }
    open > 0.0 && open >= plain
}

/// OpenMetrics as text of version 0.0.4.
fn classic(open_metrics: &str) -> String {
    let mut out = String::with_capacity(open_metrics.len());
    let blocks = Blocks {
        lines: open_metrics.lines().peekable(),
    };
    for block in blocks {
        block.write(&mut out);
    }
    out
}

/// The families of an exposition, one after the other: descriptors, then samples.
struct Blocks<'a, I: Iterator<Item = &'a str>> {
    lines: std::iter::Peekable<I>,
}

impl<'a, I: Iterator<Item = &'a str>> Iterator for Blocks<'a, I> {
    type Item = Family<'a>;

    fn next(&mut self) -> Option<Family<'a>> {
        self.lines.peek()?;
        let mut family = Family::default();
        while let Some(line) = self.lines.next_if(|line| line.starts_with("# ")) {
            family.descriptor(line);
        }
        while let Some(line) = self.lines.next_if(|line| !line.starts_with("# ")) {
            family.samples.push(line);
        }
        Some(family)
    }
}

#[derive(Default)]
struct Family<'a> {
    name: &'a str,
    kind: &'a str,
    help: &'a str,
    samples: Vec<&'a str>,
}

impl<'a> Family<'a> {
    fn descriptor(&mut self, line: &'a str) {
        let mut words = line.splitn(4, ' ').skip(1);
        let (what, name) = (words.next(), words.next());
        let value = words.next().unwrap_or_default();
        match what {
            Some("TYPE") => self.kind = value,
            Some("HELP") => self.help = value,
            _ => return,
        }
        self.name = name.unwrap_or_default();
    }

    fn write(&self, out: &mut String) {
        if !self.name.is_empty() {
            let suffix = if self.kind == "counter" { "_total" } else { "" };
            for (what, value) in [("HELP", self.help), ("TYPE", self.classic_kind())] {
                out.extend(["# ", what, " ", self.name, suffix, " ", value, "\n"]);
            }
        }
        for sample in self
            .samples
            .iter()
            .filter(|sample| !self.is_created(sample))
        {
            out.extend([sample, "\n"]);
        }
    }

    fn classic_kind(&self) -> &'a str {
        match self.kind {
            "info" | "stateset" => "gauge",
            "unknown" | "" => "untyped",
            kind => kind,
        }
    }

    fn is_created(&self, sample: &str) -> bool {
        let rest = sample.strip_prefix(self.name);
        self.kind != "gauge" && rest.is_some_and(|rest| rest.starts_with("_created"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(accept: &str) -> bool {
        let value = HeaderValue::from_str(accept).unwrap();
        prefers_open_metrics(&HeaderMap::from_iter([(header::ACCEPT, value)]))
    }

    #[test]
    fn each_reader_gets_the_format_it_asks_for() {
        // As Prometheus 2 and 3 ask, and with OpenMetrics turned off.
        assert!(asks(
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
        ));
        assert!(!asks("text/plain;version=0.0.4;q=1,*/*;q=0.1"));
        assert!(asks("application/openmetrics-text"));
        assert!(!asks("text/plain, application/openmetrics-text;q=0.5"));
        assert!(!asks("application/openmetrics-text;q=0"));
        assert!(!asks("*/*"));
        assert!(!asks("text/html"));
        assert!(!prefers_open_metrics(&HeaderMap::new()));
    }

    #[test]
    fn the_older_format_says_the_same() {
        let open = "# HELP a Things, as they are.\n# TYPE a counter\n# UNIT a x\na_total{l=\"# \\\"x\"} 1\na_created 7\n\
                    # TYPE b histogram\n# HELP b Times.\nb_bucket{le=\"+Inf\"} 1\nb_sum 0.5\nb_count 1\n\
                    # TYPE c gauge\n# HELP c Now.\nc -1\n# TYPE d info\n# HELP d What.\nd_info{v=\"1\"} 1\n# EOF\n";
        let expected = "# HELP a_total Things, as they are.\n# TYPE a_total counter\na_total{l=\"# \\\"x\"} 1\n\
                    # HELP b Times.\n# TYPE b histogram\nb_bucket{le=\"+Inf\"} 1\nb_sum 0.5\nb_count 1\n\
                    # HELP c Now.\n# TYPE c gauge\nc -1\n# HELP d What.\n# TYPE d gauge\nd_info{v=\"1\"} 1\n";
        assert_eq!(classic(open), expected);
    }
}
