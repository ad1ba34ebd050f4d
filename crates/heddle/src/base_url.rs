//! Addresses of servers in the configuration, checked before anything is started.

use http::Uri;

use crate::failure::Failure;

/// Reads the address of a server, `what` it is for people, which may have a path and nothing behind it.
pub(crate) fn parse(
    text: &str,
    what: &str,
    schemes: &[&str],
    example: &str,
) -> Result<Uri, Failure> {
    let wrong = |reason: &str| {
        Failure::Usage(format!(
            "`{text}` is no {what}: {reason}; write for example {example}"
        ))
    };
    let uri: Uri = text
        .parse()
        .map_err(|error: http::uri::InvalidUri| wrong(&error.to_string()))?;
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let known = |scheme: &str| schemes.contains(&scheme);
    if !uri.scheme_str().is_some_and(known) || authority.is_empty() {
        let schemes: Vec<String> = schemes.iter().map(|one| format!("{one}://")).collect();
        return Err(wrong(&format!(
            "it needs {} and a host",
            schemes.join(" or ")
        )));
    }
    if authority.contains('@') {
        return Err(wrong("credentials do not belong into an address"));
    }
    if uri.query().is_some() {
        return Err(wrong("it has a query"));
    }
    Ok(uri)
}
