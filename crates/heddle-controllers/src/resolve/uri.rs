//! As much of RFC 3986 as destinations need: is this an absolute http(s) URI, and what does a relative one mean.

/// Whether events can be sent there; if not, why.
pub(super) fn check_absolute(uri: &str) -> Result<(), String> {
    let Some((scheme, rest)) = uri.split_once("://") else {
        return Err(format!(
            "the uri {uri:?} is not absolute, and there is no ref to resolve it against"
        ));
    };
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err(format!("the uri {uri:?} is neither http nor https"));
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host.is_empty() || host.starts_with(':') {
        return Err(format!("the uri {uri:?} names no host"));
    }
    if uri.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(format!(
            "the uri {uri:?} has a space or control character in it"
        ));
    }
    Ok(())
}

/// `relative` seen from `base`, as RFC 3986 section 5.2 says; `None` when it is absolute or names a host.
pub(super) fn join(base: &str, relative: &str) -> Option<String> {
    let head = relative.split(['/', '?', '#']).next().unwrap_or_default();
    if head.contains(':') || relative.starts_with("//") {
        return None;
    }
    let authority_start = base.find("://").map_or(0, |at| at + 3);
    let path_start = base[authority_start..]
        .find(['/', '?', '#'])
        .map_or(base.len(), |at| authority_start + at);
    let (root, rest) = base.split_at(path_start);
    let rest = rest.split('#').next().unwrap_or_default();
    let (base_path, base_query) = split_query(rest);
    let (reference, fragment) = match relative.split_once('#') {
        Some((reference, fragment)) => (reference, Some(fragment)),
        None => (relative, None),
    };
    let (path, query) = split_query(reference);
    let (path, query) = match (path.is_empty(), query) {
        (true, None) => (base_path.to_owned(), base_query),
        (true, query) => (base_path.to_owned(), query),
        (false, query) if path.starts_with('/') => (without_dots(path), query),
        (false, query) => {
            let folder = base_path.rfind('/').map_or("/", |at| &base_path[..=at]);
            (without_dots(&format!("{folder}{path}")), query)
        }
    };
    let mut joined = format!("{root}{path}");
    for (mark, part) in [('?', query), ('#', fragment)] {
        if let Some(part) = part {
            joined.push(mark);
            joined.push_str(part);
        }
    }
    Some(joined)
}

fn split_query(text: &str) -> (&str, Option<&str>) {
    match text.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (text, None),
    }
}

/// A rooted path with its `.` and `..` segments carried out.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                // A path that ends in a dot segment names a folder.
                if last {
                    kept.push("");
                }
            }
            other => kept.push(other),
        }
    }
    format!("/{}", kept.join("/"))
}
