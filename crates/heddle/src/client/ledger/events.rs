//! Events, found and watched: `/heddle/v1/events`.

use anyhow::Context as _;
use futures::TryStreamExt as _;
use heddle_api::republish::{RepublishPreview, RepublishedEvent};
use heddle_api::search::{EventPage, StreamedEvents};
use http::Request;
use serde::de::DeserializeOwned;

use super::{Ledger, query, read, refused};
use crate::client::stream::{AnswerChunks, open_chunks};

/// A line with more bytes than this is none of the server's.
const LINE_BYTES_MAX: usize = 16 << 20;

/// Which events, and how many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventsAsked {
    pub(crate) query: String,
    pub(crate) limit: u64,
    /// The `next` of the page before.
    pub(crate) before: Option<u64>,
}

impl EventsAsked {
    fn path(&self) -> String {
        let (limit, before) = (self.limit.to_string(), self.before.map(|at| at.to_string()));
        let query = query(&[
            ("q", Some(&self.query)),
            ("limit", Some(&limit)),
            ("before", before.as_deref()),
        ]);
        format!("/heddle/v1/events{query}")
    }
}

/// Which event to publish once more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RepublishAsked {
    pub(crate) place: u64,
    pub(crate) entry: Option<String>,
    /// Instead of a copy, as it was written.
    pub(crate) event: Option<Vec<u8>>,
}

impl Ledger<'_> {
    /// Publishes an event again, as a new event.
    pub(crate) async fn republish(
        &self,
        asked: &RepublishAsked,
    ) -> anyhow::Result<RepublishedEvent> {
        self.ask_to_republish(asked, false).await
    }

    /// What that would do.
    pub(crate) async fn republish_preview(
        &self,
        asked: &RepublishAsked,
    ) -> anyhow::Result<RepublishPreview> {
        self.ask_to_republish(asked, true).await
    }

    async fn ask_to_republish<T: DeserializeOwned>(
        &self,
        asked: &RepublishAsked,
        dry_run: bool,
    ) -> anyhow::Result<T> {
        let query = query(&[
            ("entry", asked.entry.as_deref()),
            ("dryRun", dry_run.then_some("1")),
        ]);
        let path = format!("/heddle/v1/events/{}/republish{query}", asked.place);
        let (kind, body) = match &asked.event {
            Some(event) => ("application/cloudevents+json", event.clone()),
            None => ("application/json", b"{}".to_vec()),
        };
        let request = Request::post(path).header(http::header::CONTENT_TYPE, kind);
        let answer = self.remote.send(request.body(body)?).await?;
        read(&answer, &format!("event {}", asked.place))
    }

    pub(crate) async fn events(&self, asked: &EventsAsked) -> anyhow::Result<EventPage> {
        self.get(&asked.path(), "events").await
    }

    /// The events themselves, as a batch that can be published again, byte for byte as the server wrote it.
    pub(crate) async fn events_batch(&self, asked: &EventsAsked) -> anyhow::Result<String> {
        let kind = "application/cloudevents-batch+json";
        let request = Request::get(asked.path()).header("accept", kind);
        let answer = self.remote.send(request.body(Vec::new())?).await?;
        if !answer.code.is_success() {
            return Err(refused("events", &answer).into());
        }
        let text = answer.text();
        anyhow::ensure!(
            text.trim_end().ends_with(']'),
            "the search broke off before its end; ask for less with --limit, or again"
        );
        Ok(text)
    }

    /// One event, byte for byte as the server wrote it: to read it would round its numbers.
    pub(crate) async fn event(&self, place: u64) -> anyhow::Result<String> {
        let request = Request::get(format!("/heddle/v1/events/{place}")).body(Vec::new())?;
        let answer = self.remote.send(request).await?;
        if !answer.code.is_success() {
            return Err(refused(&format!("event {place}"), &answer).into());
        }
        Ok(answer.text())
    }

    /// What comes in from now on.
    pub(crate) async fn tail(&self, text: &str) -> anyhow::Result<TailLines> {
        let query = query(&[("watch", Some("1")), ("q", Some(text))]);
        let request = Request::get(format!("/heddle/v1/events{query}")).body(Vec::new())?;
        Ok(TailLines {
            chunks: open_chunks(self.remote, request, "events").await?,
            rest: Vec::new(),
        })
    }
}

/// The lines of a tail.
pub(crate) struct TailLines {
    chunks: AnswerChunks,
    rest: Vec<u8>,
}

impl TailLines {
    /// The next line; `None` when the server ended.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<StreamedEvents>> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                let line = serde_json::from_slice(&line);
                return Ok(Some(
                    line.context("the server sent a line that cannot be read")?,
                ));
            }
            let Some(chunk) = self.chunks.try_next().await? else {
                return Ok(None);
            };
            self.rest.extend_from_slice(&chunk);
            anyhow::ensure!(
                self.rest.len() <= LINE_BYTES_MAX,
                "the server sent a line without an end"
            );
        }
    }
}
