//! Publishers: one event after the other over real HTTP, each until it is known to be kept or is given up.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use heddle_rt::{Chance, Clock, OnError, Tasks};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use turmoil::net::TcpStream;

use super::super::book::{Book, PublishResult};
use super::super::opening;
use super::super::wish::{TYPES, Wish};
use super::house;

/// Keys of each publisher. Nobody else uses them, so that its own order is the order of its keys.
const KEYS: u64 = 2;
/// How often an event is sent at most.
const TRIES_MAX: u64 = 12;
/// How long a publisher waits for a connection, and for an answer.
const PATIENCE: Duration = Duration::from_millis(1_500);

#[derive(Debug)]
pub(super) struct Publisher {
    pub(super) number: u64,
    pub(super) events: u64,
    pub(super) clock: Clock,
    pub(super) chance: Chance,
    pub(super) book: Arc<Mutex<Book>>,
    /// Who wants what, which never changes.
    pub(super) wishes: Vec<Wish>,
}

/// A connection to the door. It ends when it is dropped.
struct Line {
    sender: SendRequest<Full<Bytes>>,
    tasks: Tasks,
}

impl Drop for Line {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

impl Publisher {
    pub(super) async fn run(self) -> turmoil::Result {
        let mut line = None;
        for counter in 0..self.events {
            self.pause(400).await;
            let type_ = TYPES[self.chance.below(3) as usize];
            let key = self.number * KEYS + self.chance.below(KEYS);
            let mut data = vec![0; self.chance.below(400) as usize];
            self.chance.fill(&mut data);
            let id = format!("p{}-{counter}", self.number);
            let number = self.book.lock().draft(id, type_, key, data.into());
            // Now and then to a broker that does not exist, so that something is refused for good.
            let broker = ["default", "nowhere"][usize::from(self.chance.below(12) == 0)];
            for _ in 0..TRIES_MAX {
                let answer = self.attempt(&mut line, number, broker).await;
                let over = match answer {
                    PublishResult::Accepted => true,
                    PublishResult::Refused => broker == "nowhere",
                    PublishResult::Unknown => self.chance.below(5) == 0,
                };
                if over {
                    break;
                }
                self.pause(600).await;
            }
        }
        Ok(())
    }

    async fn pause(&self, millis_max: u64) {
        let pause = Duration::from_millis(self.chance.below(millis_max));
        self.clock.sleep(pause).await;
    }

    /// Sends an event once and writes down what came of it.
    async fn attempt(&self, line: &mut Option<Line>, number: usize, broker: &str) -> PublishResult {
        if line.as_ref().is_none_or(|line| line.sender.is_closed()) {
            *line = self.connect().await;
        }
        let answer = match line {
            // Nothing was sent, so that nobody may see it.
            None => PublishResult::Refused,
            Some(open) => {
                let request = {
                    let mut book = self.book.lock();
                    book.send(number);
                    opening::request(&book.published[number], broker)
                };
                let asking = ask(&mut open.sender, request);
                match self.clock.timeout(PATIENCE, asking).await {
                    Ok(Ok((status, body))) => meaning(status, &body),
                    Ok(Err(_)) | Err(_) => {
                        *line = None;
                        PublishResult::Unknown
                    }
                }
            }
        };
        self.tell(number, answer);
        answer
    }

    fn tell(&self, number: usize, answer: PublishResult) {
        let elapsed = turmoil::sim_elapsed().unwrap_or_default();
        let mut book = self.book.lock();
        let event = format!("{} {answer:?} {elapsed:?}", book.published[number].id);
        book.note(&event);
        if book.answered(number, answer) {
            let type_ = book.published[number].type_;
            for wish in self.wishes.iter().filter(|wish| wish.wants(type_)) {
                book.owe(&wish.name, number);
            }
        }
    }

    async fn connect(&self) -> Option<Line> {
        let connecting = TcpStream::connect((house::NAME, house::PORT));
        let stream = self.clock.timeout(PATIENCE, connecting).await.ok()?.ok()?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
        let tasks = Tasks::new("line");
        tasks.spawn("line", OnError::Report, async move {
            // How it ended is told to whoever waits for an answer.
            drop(connection.await);
        });
        Some(Line { sender, tasks })
    }
}

async fn ask(
    sender: &mut SendRequest<Full<Bytes>>,
    mut request: Request<Full<Bytes>>,
) -> hyper::Result<(u16, Bytes)> {
    let host = http::HeaderValue::from_static(house::NAME);
    request.headers_mut().insert(http::header::HOST, host);
    sender.ready().await?;
    let response = sender.send_request(request).await?;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await?.to_bytes();
    Ok((status, body))
}

/// What an answer means for the event.
fn meaning(status: u16, body: &[u8]) -> PublishResult {
    let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    match status {
        202 => PublishResult::Accepted,
        400..500 | 507 => PublishResult::Refused,
        // Nothing is read before there is a table.
        503 if body["code"] == "starting" => PublishResult::Refused,
        _ => PublishResult::Unknown,
    }
}
