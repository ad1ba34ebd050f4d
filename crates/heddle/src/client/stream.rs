//! `/heddle/v1/stream`, followed: what changes, batch by batch, for as long as somebody looks.
//!
//! A stream that ends or breaks is opened again behind the last batch that was read whole. A server that went away is waited for.

use std::collections::VecDeque;

use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use heddle_rt::net::percent_encoded;
use http::Request;
use http_body_util::BodyExt as _;

use super::ledger::refused;
use super::reconnect::Reconnect;
use super::{ClientResponse, Remote};
use crate::terminal::Terminal;
use crate::wire::World;

/// An event with more bytes than this is none of the server's.
const EVENT_BYTES_MAX: usize = 16 << 20;

/// The bytes of an answer, as they come in.
pub(super) type AnswerChunks = BoxStream<'static, anyhow::Result<bytes::Bytes>>;

/// Asks for an answer that is read while it comes in. `what` is refused, if it is not answered with success.
pub(super) async fn open_chunks(
    remote: &Remote,
    request: Request<Vec<u8>>,
    what: &str,
) -> anyhow::Result<AnswerChunks> {
    let (parts, body) = remote.open(request).await?.into_parts();
    if parts.status.is_success() {
        let chunks = body.into_data_stream().map_err(anyhow::Error::from);
        return Ok(chunks.boxed());
    }
    let answer = ClientResponse {
        code: parts.status,
        headers: parts.headers,
        body: body.collect().await?.to_bytes(),
    };
    Err(refused(what, &answer).into())
}

/// One event as it was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamEvent {
    pub(crate) name: String,
    pub(crate) data: String,
    /// Where to go on from; the last event of a batch has one.
    pub(crate) id: Option<String>,
}

/// A stream that does not end.
pub(crate) struct EventStream<'a> {
    remote: &'a Remote,
    path: String,
    heard: Option<String>,
    reconnect: Reconnect,
    chunks: Option<AnswerChunks>,
    parser: EventParser,
    ready: VecDeque<StreamEvent>,
    /// Of a batch that has not ended yet.
    batch: Vec<StreamEvent>,
}

impl<'a> EventStream<'a> {
    /// Everything about a topic, or about one scope of it.
    pub(crate) fn of(remote: &'a Remote, topic: &str, scope: Option<&str>, world: &World) -> Self {
        let mut path = format!("/heddle/v1/stream?topics={topic}");
        if let Some(scope) = scope {
            path.push_str(&format!("&scope={}", percent_encoded(scope)));
        }
        Self {
            remote,
            path,
            heard: None,
            reconnect: Reconnect::new(world),
            chunks: None,
            parser: EventParser::default(),
            ready: VecDeque::new(),
            batch: Vec::new(),
        }
    }

    /// The events of the next batch. Whoever stops waiting loses nothing.
    pub(crate) async fn batch(
        &mut self,
        world: &World,
        terminal: &mut Terminal,
    ) -> anyhow::Result<Vec<StreamEvent>> {
        loop {
            while let Some(event) = self.ready.pop_front() {
                let id = event.id.clone();
                if !event.name.is_empty() {
                    self.batch.push(event);
                }
                if id.is_some() {
                    self.heard = id;
                    if !self.batch.is_empty() {
                        return Ok(std::mem::take(&mut self.batch));
                    }
                }
            }
            let Some(chunks) = &mut self.chunks else {
                match self.open().await {
                    Ok(()) => {}
                    Err(error) => self.reconnect.after(error, world, terminal).await?,
                }
                continue;
            };
            match chunks.try_next().await {
                Ok(Some(chunk)) => {
                    self.reconnect.arrived();
                    self.ready.extend(self.parser.read(&chunk)?);
                }
                Ok(None) | Err(_) => {
                    self.chunks = None;
                    self.reconnect.pause(world).await;
                }
            }
        }
    }

    async fn open(&mut self) -> anyhow::Result<()> {
        let mut request = Request::get(&self.path).header("accept", "text/event-stream");
        if let Some(heard) = &self.heard {
            request = request.header("last-event-id", heard);
        }
        let request = request.body(Vec::new())?;
        let chunks = open_chunks(self.remote, request, "the stream").await?;
        // What was read of a batch is told again.
        self.parser = EventParser::default();
        self.ready.clear();
        self.batch.clear();
        self.chunks = Some(chunks);
        Ok(())
    }
}

impl std::fmt::Debug for EventStream<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventStream")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Bytes in, events out, however they are cut.
#[derive(Debug, Default)]
struct EventParser {
    line: Vec<u8>,
    event: StreamEvent,
    bytes: usize,
}

impl EventParser {
    fn read(&mut self, chunk: &[u8]) -> anyhow::Result<Vec<StreamEvent>> {
        let mut events = Vec::new();
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.bytes += piece.len();
            anyhow::ensure!(
                self.bytes <= EVENT_BYTES_MAX,
                "the server sent an event without end"
            );
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                events.extend(self.end_line(&line));
            }
        }
        Ok(events)
    }

    /// An empty line ends an event; comments are for whoever keeps the connection.
    fn end_line(&mut self, line: &[u8]) -> Option<StreamEvent> {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end_matches(['\n', '\r']);
        if line.is_empty() {
            self.bytes = 0;
            let event = std::mem::take(&mut self.event);
            return (event != StreamEvent::default()).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.name),
            "id" => self.event.id = Some(value.to_owned()),
            "data" => {
                if !self.event.data.is_empty() {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "retry: 2000\n\nevent: reset\ndata: {}\n\nid: 1f-7\nevent: verdict\r\ndata: {\"a\":\ndata: 1}\n\n: alive\nid: 1f-9\n\n";

    #[test]
    fn events_are_the_same_however_their_bytes_arrive() {
        let event = |name: &str, data: &str, id: Option<&str>| StreamEvent {
            name: name.to_owned(),
            data: data.to_owned(),
            id: id.map(str::to_owned),
        };
        let expected = [
            event("reset", "{}", None),
            event("verdict", "{\"a\":\n1}", Some("1f-7")),
            event("", "", Some("1f-9")),
        ];
        for size in [1, 2, 7, TEXT.len()] {
            let mut parser = EventParser::default();
            let chunks = TEXT.as_bytes().chunks(size);
            let events: Vec<StreamEvent> = chunks
                .flat_map(|chunk| parser.read(chunk).unwrap())
                .collect();
            assert_eq!(events, expected, "cut every {size} bytes");
        }
    }

    #[test]
    fn an_event_without_end_is_given_up() {
        let mut parser = EventParser::default();
        let chunk = vec![b'x'; 1 << 20];
        let ended = (0..20).find_map(|_| parser.read(&chunk).err());
        assert!(ended.unwrap().to_string().contains("without end"));
    }
}
