//! Which services of an Application can be offered. One bad service never hides the good ones.

use heddle_api::application::{ENTRY_API, ENTRY_EVENTS, Entry, RejectedService, Service, reason};

pub(super) fn rejected(services: &[Service]) -> Vec<RejectedService> {
    services
        .iter()
        .filter_map(|service| {
            Some(RejectedService {
                id: service.id.clone(),
                reason: reason::SERVICE_INVALID.name.to_owned(),
                message: fault(service)?,
            })
        })
        .collect()
}

fn fault(service: &Service) -> Option<String> {
    if service.entries.is_empty() {
        return Some("it has no entries: add one of type API or Events".to_owned());
    }
    if service.name.is_empty() {
        return Some("its name is empty, and offerings are found by name".to_owned());
    }
    service.entries.iter().find_map(entry_fault)
}

fn entry_fault(entry: &Entry) -> Option<String> {
    match entry.type_.as_str() {
        ENTRY_EVENTS => None,
        // Older Applications name the gateway, newer ones the API itself; either tells where calls go.
        ENTRY_API if entry.gateway_url.is_none() && entry.target_url.is_none() => {
            Some("an API entry needs a gatewayUrl or a targetUrl".to_owned())
        }
        ENTRY_API => None,
        other => Some(format!(
            "an entry has type {other:?}: only API and Events are known"
        )),
    }
}
