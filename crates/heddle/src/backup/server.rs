//! The door through which a running server hands out a backup of itself: `GET /heddle/v1/backup`, for administrators.
//!
//! One at a time: the copy of the store takes room beside it for as long as it is sent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use bytes::Bytes;
use heddle_mesh::log::embedded::EmbeddedLog;
use heddle_rt::{OnError, Tasks, Vfs};
use heddle_store::Store;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::frames::Frame;
use super::manifest::chunk_bytes;
use super::{CHUNK_BYTES, Content, Entry, source};
use crate::audit::AuditLog;
use crate::files;

/// Where it is asked for, below `/heddle/v1`.
pub(crate) const PATH: &str = "/backup";
/// Pieces of a chunk each that wait for a slow reader.
const PIECES_MAX: usize = 4;
/// The copy of the store while it is sent.
const COPY: &str = ".backup-resources.redb";

/// The logs that a backup copies while they are appended to.
#[derive(Clone, Debug)]
pub(crate) struct BackedUpLogs {
    pub(crate) events: Arc<EmbeddedLog>,
    pub(crate) audit: AuditLog,
}

/// What a backup is made from.
#[derive(Clone, Debug)]
pub(crate) struct Backups {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    store: Store,
    logs: BackedUpLogs,
    tasks: Tasks,
    alone: Arc<Semaphore>,
}

type Pieces = mpsc::Sender<Result<Bytes, std::io::Error>>;

impl Backups {
    pub(crate) fn new(
        vfs: Arc<dyn Vfs>,
        dir: &Path,
        store: Store,
        events: Arc<EmbeddedLog>,
        audit: AuditLog,
        tasks: Tasks,
    ) -> Self {
        let inner = Inner {
            vfs,
            dir: dir.to_path_buf(),
            store,
            logs: BackedUpLogs { events, audit },
            tasks,
            alone: Arc::new(Semaphore::new(1)),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The router, without the prefix.
    pub(crate) fn router(self) -> Router {
        Router::new().route(PATH, get(hand_out)).with_state(self)
    }

    async fn begin(&self, permit: OwnedSemaphorePermit) -> anyhow::Result<Body> {
        let inner = self.inner.clone();
        let copy = inner.dir.join(COPY);
        if inner.vfs.exists(&copy)? {
            // Of an attempt that a kill broke off.
            inner.vfs.remove(&copy)?;
        }
        inner.store.backup(&copy).await?;
        let (pieces, mut rx) = mpsc::channel(PIECES_MAX);
        self.inner
            .tasks
            .spawn_thread("backup", OnError::Report, move || {
                let _permit = permit;
                inner.send(&copy, &pieces);
                if let Err(error) = inner.vfs.remove(&copy) {
                    tracing::warn!(path = %copy.display(), %error, "cannot remove the copy of a backup");
                }
            })
            .context("cannot start a thread")?;
        Ok(Body::from_stream(futures::stream::poll_fn(move |cx| {
            rx.poll_recv(cx)
        })))
    }
}

impl Inner {
    /// Sends everything, or the reason why not. A reader that is gone is none.
    fn send(&self, copy: &Path, pieces: &Pieces) {
        let vfs = self.vfs.as_ref();
        let listed = source::online(vfs, &self.dir, copy, &self.logs);
        let sent = listed.and_then(|entries| {
            for entry in &entries {
                send_entry(entry, pieces)?;
            }
            let entries = entries.len() as u64;
            push(pieces, Frame::End { entries }.line())
        });
        if let Err(error) = sent {
            tracing::warn!(error = %format!("{error:#}"), "a backup was broken off");
            let message = format!("{error:#}");
            push(pieces, Frame::Failed { message }.line()).unwrap_or_default();
        }
    }
}

fn push(pieces: &Pieces, piece: Bytes) -> anyhow::Result<()> {
    pieces
        .blocking_send(Ok(piece))
        .map_err(|_| anyhow::anyhow!("the reader went away"))
}

fn send_entry(entry: &Entry, pieces: &Pieces) -> anyhow::Result<()> {
    let name = entry.name.clone();
    match &entry.content {
        Content::Directory { mode } => push(pieces, Frame::Directory { name, mode: *mode }.line()),
        Content::Link { target } => {
            let target = target.clone();
            push(pieces, Frame::Link { name, target }.line())
        }
        Content::Bytes { bytes, mode } => {
            let (mode, size) = (*mode, bytes.len() as u64);
            push(pieces, Frame::File { name, mode, size }.line())?;
            push(pieces, bytes.clone().into())
        }
        Content::File { path, bytes, mode } => {
            let (mode, size) = (*mode, *bytes);
            push(pieces, Frame::File { name, mode, size }.line())?;
            read_chunks(path, size, |chunk| {
                push(pieces, Bytes::copy_from_slice(chunk))
            })
        }
    }
}

/// Hands the first so many bytes of a file over, piece by piece.
pub(crate) fn read_chunks(
    path: &Path,
    bytes: u64,
    mut each: impl FnMut(&[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    use std::io::Read as _;
    let mut file = files::open(path)?;
    let (mut left, mut chunk) = (bytes, vec![0; CHUNK_BYTES]);
    while left > 0 {
        let count = chunk_bytes(left);
        file.read_exact(&mut chunk[..count])
            .with_context(|| format!("{} became shorter while it was read", path.display()))?;
        each(&chunk[..count])?;
        left -= count as u64;
    }
    Ok(())
}

async fn hand_out(State(backups): State<Backups>) -> Response {
    let Ok(permit) = backups.inner.alone.clone().try_acquire_owned() else {
        let message = "a backup is being made already; try again when it is done";
        return refuse(StatusCode::CONFLICT, message);
    };
    match backups.begin(permit).await {
        Ok(body) => Response::new(body),
        Err(error) => refuse(StatusCode::INSUFFICIENT_STORAGE, &format!("{error:#}")),
    }
}

fn refuse(code: StatusCode, message: &str) -> Response {
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code.as_u16()});
    let kind = HeaderValue::from_static("application/json");
    (code, [(header::CONTENT_TYPE, kind)], body.to_string()).into_response()
}
