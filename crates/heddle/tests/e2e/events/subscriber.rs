//! A subscriber in the test's own process, whose manners may change at any time.
//!
//! Each path is a subscriber of its own with its own manner. Everything that arrives is kept in
//! order before it is answered.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use heddle_rt::net::{Listener, bind};
use heddle_rt::{Clock, OnError, Tasks};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::wire::{self, Message};
use crate::harness::eventually_or_else;

/// How a path answers.
#[derive(Clone, Debug)]
pub(crate) enum Manner {
    Accept,
    Status(u16),
    /// A status with a body of so many bytes.
    Wordy(u16, usize),
    /// 200 with these header lines and this body.
    Say(&'static str, String),
    /// 429, and not again for so many seconds.
    Busy(u32),
    /// Accepts after a while.
    Slow(Duration),
    /// Never answers, until its manner changes or the other side gives up.
    Hang,
    /// Closes the connection instead of answering.
    Close,
}

#[derive(Debug)]
pub(crate) struct Subscriber {
    address: SocketAddr,
    book: Arc<Book>,
    tasks: Tasks,
}

#[derive(Debug, Default)]
struct Book {
    manners: Mutex<HashMap<String, Manner>>,
    received: Mutex<Vec<Message>>,
}

impl Subscriber {
    pub(crate) async fn start() -> Self {
        let listener = bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let (address, book, tasks) = (
            listener.address(),
            Arc::new(Book::default()),
            Tasks::new("subscriber"),
        );
        let accepting = accept(listener, book.clone(), tasks.clone());
        tasks.spawn("accept", OnError::Report, accepting);
        Self {
            address,
            book,
            tasks,
        }
    }

    /// Where `path` is, which starts with a slash.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// From now on.
    pub(crate) fn behave(&self, path: &str, manner: Manner) {
        self.book.manners.lock().insert(path.to_owned(), manner);
    }

    /// What came to a path, in order.
    pub(crate) fn received(&self, path: &str) -> Vec<Message> {
        let received = self.book.received.lock();
        let to_path = received.iter().filter(|message| message.path() == path);
        to_path.cloned().collect()
    }

    /// The ids that came to a path, in order, repetitions included.
    pub(crate) fn ids(&self, path: &str) -> Vec<String> {
        let received = self.book.received.lock();
        let to_path = received.iter().filter(|message| message.path() == path);
        to_path.map(id).collect()
    }

    /// How often each id came to a path.
    pub(crate) fn tally(&self, path: &str) -> BTreeMap<String, usize> {
        let mut tally = BTreeMap::new();
        for id in self.ids(path) {
            *tally.entry(id).or_default() += 1;
        }
        tally
    }

    /// Waits until so many different events have come to a path.
    pub(crate) async fn until_received(&self, path: &str, events: usize) {
        eventually_or_else(&format!("{events} events at {path}"), async || {
            let seen = self.tally(path).len();
            if seen >= events {
                return Ok(());
            }
            Err(format!("{seen} came"))
        })
        .await;
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

fn id(message: &Message) -> String {
    match message.header("ce-id") {
        Some(id) => id.to_owned(),
        None => message.json()["id"].as_str().unwrap().to_owned(),
    }
}

async fn accept(listener: Listener, book: Arc<Book>, tasks: Tasks) {
    while let Ok(stream) = listener.accept().await {
        let serving = serve(stream, book.clone());
        tasks.spawn("serve", OnError::Report, async move {
            // Whoever hangs up early has seen enough.
            let _ended: io::Result<()> = serving.await;
        });
    }
}

async fn serve(mut stream: TcpStream, book: Arc<Book>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    while let Some(message) = wire::read(&mut stream).await? {
        let manner = book.manners.lock().get(message.path()).cloned();
        book.received.lock().push(message);
        let (status, headers, body) = match manner.unwrap_or(Manner::Accept) {
            Manner::Accept => (202, String::new(), String::new()),
            Manner::Status(status) => (status, String::new(), "no".to_owned()),
            Manner::Wordy(status, bytes) => (status, String::new(), "x".repeat(bytes)),
            Manner::Say(headers, body) => (200, headers.to_owned(), body),
            Manner::Busy(seconds) => (429, format!("retry-after: {seconds}\r\n"), String::new()),
            Manner::Slow(pause) => {
                Clock::system().sleep(pause).await;
                (202, String::new(), String::new())
            }
            Manner::Hang => {
                let mut more = [0; 64];
                while stream.read(&mut more).await? > 0 {}
                return Ok(());
            }
            Manner::Close => return Ok(()),
        };
        let answer = format!(
            "HTTP/1.1 {status} Said\r\n{headers}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(answer.as_bytes()).await?;
    }
    Ok(())
}
