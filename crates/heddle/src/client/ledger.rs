//! What the server knows about events: `/heddle/v1/`, asked with the token of the kubeconfig.
//!
//! One function per path; the bodies are those of `heddle_api::ledger`. A refusal becomes a
//! [`Failure`] in the server's words, with its code, so that it can be looked up.

mod audit;
mod delays;
mod events;

use anyhow::Context as _;
use heddle_api::checks::CheckReport;
use heddle_api::dead_letters::marks::{GroupMark, MarkRequest};
use heddle_api::dead_letters::{
    BulkAct, BulkOperation, BulkOperations, DeadLetterGroups, DeadLetterPreview, TriedDeadLetter,
};
use heddle_api::health::alerts::told::AlertList;
use heddle_api::health::inventory::Inventory;
use heddle_api::health::topology::TopologyGraph;
use heddle_api::health::{ApplicationHealth, MeshHealth, NamespaceHealth};
use heddle_api::ledger::{
    Accounts, DeadLetterDetail, DeadLetterPage, DeadLetterSelection, DeadLettersTaken, ErrorBody,
    ExplainRequest, Explanation, Trace,
};
use heddle_api::refused_events::RefusedEvents;
use heddle_api::resend::{ResendPreview, ResendRequest};
use heddle_api::silence::Silence;
use heddle_api::types::SeenTypes;
use heddle_api::what_if::{WhatIf, WhatIfRequest};
use heddle_rt::net::percent_encoded;
use http::{Request, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use self::audit::AuditLinesAsked;
pub(crate) use self::delays::DelaysAsked;
pub(crate) use self::events::{EventsAsked, RepublishAsked};
use super::{ClientResponse, Remote};
use crate::failure::Failure;
use crate::output::harmless;

/// How many dead letters one answer holds.
pub(crate) const PAGE_MAX: u64 = 500;

/// With so many events of one id, older ones are not asked for.
const TRACED_MAX: usize = 100;

/// The server's record of events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ledger<'a> {
    remote: &'a Remote,
}

/// Which dead letters to list; all that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeadLetterQuery {
    pub(crate) consumer: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) type_: Option<String>,
    pub(crate) source: Option<String>,
    pub(crate) id: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) limit: u64,
    /// The `next` of the page before.
    pub(crate) after: Option<String>,
}

/// What came of redriving or discarding: many are an operation.
#[derive(Debug, serde::Deserialize)]
#[serde(untagged)]
pub(crate) enum TakeAnswer {
    Begun(Box<BulkOperation>),
    Taken(DeadLettersTaken),
}

/// What many of are worked on by an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BulkOf {
    DeadLetters,
    Events,
}

impl BulkOf {
    /// As in paths and commands.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::DeadLetters => "dead-letters",
            Self::Events => "events",
        }
    }
}

impl<'a> Ledger<'a> {
    pub(crate) fn of(remote: &'a Remote) -> Self {
        Self { remote }
    }

    /// Every retained event with this id, or the newest ones where that is very many.
    pub(crate) async fn trace(&self, id: &str, source: Option<&str>) -> anyhow::Result<Trace> {
        self.trace_from(id, source, 0).await
    }

    /// The same of those that came in at a place in the log or behind it. Without a source one answer may not have looked at
    /// all of them, so it is asked for the rest.
    pub(crate) async fn trace_from(
        &self,
        id: &str,
        source: Option<&str>,
        from: u64,
    ) -> anyhow::Result<Trace> {
        let mut trace = self.trace_part(id, source, from, None).await?;
        while let Some(older) = trace.older
            && trace.events.len() < TRACED_MAX
        {
            let mut part = self.trace_part(id, source, from, Some(older)).await?;
            // What is lost is told of what was found, or of what was not.
            if !part.events.is_empty() || trace.events.is_empty() {
                trace.losses = part.losses;
            }
            part.events.append(&mut trace.events);
            (trace.events, trace.older) = (part.events, part.older);
        }
        Ok(trace)
    }

    async fn trace_part(
        &self,
        id: &str,
        source: Option<&str>,
        from: u64,
        before: Option<u64>,
    ) -> anyhow::Result<Trace> {
        let from = (from > 0).then(|| from.to_string());
        let before = before.map(|before| before.to_string());
        let query = query(&[
            ("id", Some(id)),
            ("source", source),
            ("from", from.as_deref()),
            ("before", before.as_deref()),
        ]);
        self.get(&format!("/heddle/v1/trace{query}"), &format!("event {id}"))
            .await
    }

    /// What was refused lately, of this id if one is meant.
    pub(crate) async fn refused(
        &self,
        id: Option<&str>,
        limit: u64,
    ) -> anyhow::Result<RefusedEvents> {
        let limit = limit.to_string();
        let query = query(&[("id", id), ("limit", Some(&limit))]);
        let path = format!("/heddle/v1/events/refused{query}");
        self.get(&path, "what was refused").await
    }

    pub(crate) async fn dead_letters(
        &self,
        asked: &DeadLetterQuery,
    ) -> anyhow::Result<DeadLetterPage> {
        let limit = asked.limit.to_string();
        let query = query(&[
            ("consumer", asked.consumer.as_deref()),
            ("namespace", asked.namespace.as_deref()),
            ("type", asked.type_.as_deref()),
            ("source", asked.source.as_deref()),
            ("id", asked.id.as_deref()),
            ("group", asked.group.as_deref()),
            ("limit", Some(&limit)),
            ("after", asked.after.as_deref()),
        ]);
        self.get(&format!("/heddle/v1/dead-letters{query}"), "dead letters")
            .await
    }

    /// What a change would have done with the stored events.
    pub(crate) async fn what_if(&self, request: &WhatIfRequest) -> anyhow::Result<WhatIf> {
        self.post("/heddle/v1/what-if", request, "the change").await
    }

    /// Everything that the server finds when it looks at itself.
    pub(crate) async fn checks(&self) -> anyhow::Result<CheckReport> {
        self.get("/heddle/v1/checks", "checks").await
    }

    pub(crate) async fn dead_letter(&self, name: &str) -> anyhow::Result<DeadLetterDetail> {
        let path = format!("/heddle/v1/dead-letters/{}", percent_encoded(name));
        self.get(&path, &format!("dead letter {name}")).await
    }

    pub(crate) async fn redrive(
        &self,
        selection: &DeadLetterSelection,
    ) -> anyhow::Result<TakeAnswer> {
        let path = "/heddle/v1/dead-letters/redrive";
        self.post(path, selection, "dead letters").await
    }

    pub(crate) async fn discard(
        &self,
        selection: &DeadLetterSelection,
    ) -> anyhow::Result<TakeAnswer> {
        let path = "/heddle/v1/dead-letters/discard";
        self.post(path, selection, "dead letters").await
    }

    /// What redriving or discarding would do.
    pub(crate) async fn preview(
        &self,
        act: BulkAct,
        selection: &DeadLetterSelection,
    ) -> anyhow::Result<DeadLetterPreview> {
        let selection = DeadLetterSelection {
            dry_run: true,
            ..selection.clone()
        };
        let path = format!("/heddle/v1/dead-letters/{}", act.word());
        self.post(&path, &selection, "dead letters").await
    }

    /// Dead letters by what they have in common.
    pub(crate) async fn dead_letter_groups(
        &self,
        by: &str,
        asked: &DeadLetterQuery,
    ) -> anyhow::Result<DeadLetterGroups> {
        let query = query(&[
            ("by", Some(by)),
            ("consumer", asked.consumer.as_deref()),
            ("namespace", asked.namespace.as_deref()),
            ("type", asked.type_.as_deref()),
            ("source", asked.source.as_deref()),
            ("group", asked.group.as_deref()),
        ]);
        let path = format!("/heddle/v1/dead-letters/groups{query}");
        self.get(&path, "dead letters").await
    }

    /// Says something about a group, by its key or a letter in it.
    pub(crate) async fn mark_group(
        &self,
        group: &str,
        request: &MarkRequest,
    ) -> anyhow::Result<GroupMark> {
        self.post(&mark_path(group), request, &format!("group {group}"))
            .await
    }

    pub(crate) async fn unmark_group(&self, group: &str) -> anyhow::Result<GroupMark> {
        let request = Request::delete(mark_path(group)).body(Vec::new())?;
        read(&self.remote.send(request).await?, &format!("group {group}"))
    }

    pub(crate) async fn try_dead_letter(&self, name: &str) -> anyhow::Result<TriedDeadLetter> {
        let path = format!("/heddle/v1/dead-letters/{}/try", percent_encoded(name));
        let nothing = serde_json::json!({});
        self.post(&path, &nothing, &format!("dead letter {name}"))
            .await
    }

    /// What is done with many of them.
    pub(crate) async fn bulk_operations(&self, of: BulkOf) -> anyhow::Result<BulkOperations> {
        let path = format!("/heddle/v1/{}/operations", of.word());
        self.get(&path, "operations").await
    }

    pub(crate) async fn bulk_operation(
        &self,
        of: BulkOf,
        id: &str,
    ) -> anyhow::Result<BulkOperation> {
        let (of, name) = (of.word(), percent_encoded(id));
        let path = format!("/heddle/v1/{of}/operations/{name}");
        self.get(&path, &format!("operation {id}")).await
    }

    pub(crate) async fn stop_bulk(&self, of: BulkOf, id: &str) -> anyhow::Result<BulkOperation> {
        let (of, name) = (of.word(), percent_encoded(id));
        let path = format!("/heddle/v1/{of}/operations/{name}/stop");
        let nothing = serde_json::json!({});
        self.post(&path, &nothing, &format!("operation {id}")).await
    }

    /// What sending events again would do.
    pub(crate) async fn resend_preview(
        &self,
        request: &ResendRequest,
    ) -> anyhow::Result<ResendPreview> {
        let request = ResendRequest {
            dry_run: true,
            ..request.clone()
        };
        self.post("/heddle/v1/events/resend", &request, &request.consumer)
            .await
    }

    /// Begins to send events again.
    pub(crate) async fn resend(&self, request: &ResendRequest) -> anyhow::Result<BulkOperation> {
        self.post("/heddle/v1/events/resend", request, &request.consumer)
            .await
    }

    /// Why a consumer got nothing in a time.
    pub(crate) async fn silence(
        &self,
        consumer: &str,
        since: &str,
        until: Option<&str>,
    ) -> anyhow::Result<Silence> {
        let query = query(&[
            ("consumer", Some(consumer)),
            ("since", Some(since)),
            ("until", until),
        ]);
        self.get(&format!("/heddle/v1/silence{query}"), consumer)
            .await
    }

    pub(crate) async fn explain(&self, asked: &ExplainRequest) -> anyhow::Result<Explanation> {
        self.post("/heddle/v1/explain", asked, &asked.entry).await
    }

    pub(crate) async fn types(
        &self,
        last: u64,
        namespace: Option<&str>,
    ) -> anyhow::Result<SeenTypes> {
        let last = last.to_string();
        let query = query(&[("last", Some(&last)), ("namespace", namespace)]);
        self.get(&format!("/heddle/v1/types{query}"), "types").await
    }

    pub(crate) async fn accounts(&self) -> anyhow::Result<Accounts> {
        self.get("/heddle/v1/accounts", "accounts").await
    }

    pub(crate) async fn alerts(&self) -> anyhow::Result<AlertList> {
        self.get("/heddle/v1/alerts", "alerts").await
    }

    /// With all applications.
    pub(crate) async fn mesh_health(&self) -> anyhow::Result<MeshHealth> {
        let path = "/heddle/v1/health?applications";
        self.get(path, "the health of the mesh").await
    }

    pub(crate) async fn application_health(&self, name: &str) -> anyhow::Result<ApplicationHealth> {
        let path = format!("/heddle/v1/health/applications/{}", percent_encoded(name));
        self.get(&path, &format!("application {name}")).await
    }

    pub(crate) async fn pair_health(
        &self,
        application: &str,
        namespace: &str,
    ) -> anyhow::Result<NamespaceHealth> {
        let [name, within] = [application, namespace].map(percent_encoded);
        let path = format!("/heddle/v1/health/applications/{name}/namespaces/{within}");
        let what = format!("application {application} in {namespace}");
        self.get(&path, &what).await
    }

    pub(crate) async fn inventory(&self) -> anyhow::Result<Inventory> {
        self.get("/heddle/v1/health/inventory", "the inventory")
            .await
    }

    /// `name` and `verdicts` narrow what is told; no verdict is every verdict.
    pub(crate) async fn topology(
        &self,
        all: bool,
        name: Option<&str>,
        verdicts: &str,
    ) -> anyhow::Result<TopologyGraph> {
        let verdicts = Some(verdicts).filter(|words| !words.is_empty());
        let query = query(&[
            ("all", all.then_some("1")),
            ("q", name),
            ("verdict", verdicts),
        ]);
        self.get(&format!("/heddle/v1/topology{query}"), "the topology")
            .await
    }

    async fn get<T: DeserializeOwned>(&self, path: &str, object: &str) -> anyhow::Result<T> {
        let request = Request::get(path).body(Vec::new())?;
        read(&self.remote.send(request).await?, object)
    }

    async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        object: &str,
    ) -> anyhow::Result<T> {
        let request = Request::post(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(serde_json::to_vec(body)?)?;
        read(&self.remote.send(request).await?, object)
    }
}

fn mark_path(group: &str) -> String {
    format!(
        "/heddle/v1/dead-letters/groups/{}/mark",
        percent_encoded(group)
    )
}

fn read<T: DeserializeOwned>(answer: &ClientResponse, object: &str) -> anyhow::Result<T> {
    if !answer.code.is_success() {
        return Err(refused(object, answer).into());
    }
    serde_json::from_slice(&answer.body)
        .with_context(|| format!("{object}: the answer is not the JSON that was expected"))
}

/// What a refusal about `object` means, in the server's words.
pub(crate) fn refused(object: &str, answer: &ClientResponse) -> Failure {
    // A door in front of the mesh (no token, no such path) answers with a Status instead.
    let Some(refusal) = refusal(answer) else {
        return answer.refusal(object);
    };
    let text = format!("{object}: {}", told(&refusal));
    match answer.code {
        StatusCode::NOT_FOUND => Failure::NotFound(text),
        StatusCode::CONFLICT => Failure::Conflict(text),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Failure::Refused(text),
        _ => Failure::Rejected(text),
    }
}

/// The refusal in an answer, if it is one of the mesh's.
pub(crate) fn refusal(answer: &ClientResponse) -> Option<ErrorBody> {
    serde_json::from_slice(&answer.body).ok()
}

/// Message first, then what a script or a search needs.
pub(crate) fn told(refusal: &ErrorBody) -> String {
    let mut facts = vec![format!("code {}", refusal.code)];
    facts.extend((refusal.attribute.iter()).map(|attribute| format!("attribute {attribute}")));
    facts.extend(
        refusal
            .index
            .map(|index| format!("event {} of the batch", index + 1)),
    );
    facts.extend((refusal.details.iter()).map(|(name, value)| format!("{name} {value}")));
    harmless(&format!("{} ({})", refusal.message, facts.join(", ")))
}

/// `?a=b&c=d` of what is given.
fn query(pairs: &[(&str, Option<&str>)]) -> String {
    let mut text = String::new();
    for (name, value) in pairs {
        if let Some(value) = value {
            text.push(if text.is_empty() { '?' } else { '&' });
            text.push_str(name);
            text.push('=');
            text.push_str(&percent_encoded(value));
        }
    }
    text
}

#[cfg(test)]
mod tests;
