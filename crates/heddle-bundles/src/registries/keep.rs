//! Fetching an image into the store: manifest, configuration, layers, each verified, and then all of it kept at once.

use std::sync::Arc;

use bytes::Bytes;
use futures::{TryStreamExt as _, stream};
use heddle_api::bundle_source::FetchError;
use heddle_rt::Tasks;
use tokio::sync::mpsc;

use super::source::Source;
use crate::images::manifest::{self, Descriptor, Document, Manifest};
use crate::images::{self, Digest, Hold, Store};

/// Blobs fetched at once.
const BLOBS_AT_ONCE: usize = 3;
/// Pieces of a blob that may wait to be written.
const PIECES_WAITING: usize = 16;

impl From<images::Error> for FetchError {
    fn from(error: images::Error) -> Self {
        match error {
            images::Error::Mismatch { .. } => Self::Mismatch(error.to_string()),
            images::Error::Refused(why) => Self::Refused(why),
            // Room can be made.
            other => Self::Unavailable(other.in_words()),
        }
    }
}

/// Keeps all of an image.
pub(super) async fn keep<S: Source>(
    source: &S,
    store: &Store,
    tasks: &Tasks,
    repository: &str,
    digest: &Digest,
) -> Result<(), FetchError> {
    let fetching = Fetching {
        source,
        tasks,
        repository,
        hold: Arc::new(store.hold()),
    };
    let image = match fetching.manifest(digest).await? {
        Document::Image(image) => image,
        Document::Index(entries) => {
            let entry = manifest::for_this_machine(&entries).ok_or_else(|| {
                let architecture = manifest::architecture();
                FetchError::Refused(format!("it is not made for linux/{architecture}"))
            })?;
            match fetching.manifest(&entry.digest).await? {
                Document::Image(image) => image,
                Document::Index(_) => {
                    return Err(FetchError::Refused(
                        "an index inside of an index".to_owned(),
                    ));
                }
            }
        }
    };
    check(&image, store.limits())?;
    let blobs = image.layers.iter().chain([&image.config]).map(Ok);
    stream::iter(blobs)
        .try_for_each_concurrent(BLOBS_AT_ONCE, |descriptor| fetching.blob(descriptor))
        .await?;
    let (hold, digest) = (fetching.hold, digest.clone());
    on_thread(tasks, "keep an image", move || hold.seal(&digest)).await
}

/// Does what blocks on a thread of its own. That none could be had passes, too.
async fn on_thread<T: Send + 'static>(
    tasks: &Tasks,
    name: &str,
    work: impl FnOnce() -> Result<T, images::Error> + Send + 'static,
) -> Result<T, FetchError> {
    match tasks.blocking(name, work).await {
        Ok(done) => Ok(done?),
        Err(error) => Err(FetchError::Unavailable(error.to_string())),
    }
}

/// Refuses what would be fetched in vain.
fn check(image: &Manifest, limits: images::Limits) -> Result<(), FetchError> {
    for layer in &image.layers {
        manifest::packing(layer).map_err(FetchError::Refused)?;
    }
    if image.config.size > manifest::DOCUMENT_BYTES_MAX {
        return Err(FetchError::Refused(
            "its configuration is too large".to_owned(),
        ));
    }
    let sizes = image.layers.iter().map(|layer| layer.size);
    let bytes = sizes.fold(image.config.size, u64::saturating_add);
    let max = limits.image_bytes_max;
    if bytes > max {
        return Err(FetchError::Refused(format!(
            "it has {bytes} bytes, and {max} are allowed"
        )));
    }
    Ok(())
}

struct Fetching<'a, S> {
    source: &'a S,
    tasks: &'a Tasks,
    repository: &'a str,
    hold: Arc<Hold>,
}

impl<S: Source> Fetching<'_, S> {
    async fn manifest(&self, digest: &Digest) -> Result<Document, FetchError> {
        let bytes = self.source.manifest(self.repository, digest).await?;
        let document = manifest::parse(&bytes, None).map_err(FetchError::Refused)?;
        let (hold, digest) = (self.hold.clone(), digest.clone());
        on_thread(self.tasks, "keep a manifest", move || {
            hold.put(&digest, &bytes)
        })
        .await?;
        Ok(document)
    }

    async fn blob(&self, descriptor: &Descriptor) -> Result<(), FetchError> {
        let (hold, wanted) = (self.hold.clone(), descriptor.clone());
        let writer = on_thread(self.tasks, "look for a blob", move || {
            if hold.has(&wanted.digest) {
                return Ok(None);
            }
            hold.writer(&wanted.digest, wanted.size).map(Some)
        });
        let Some(mut writer) = writer.await? else {
            return Ok(());
        };
        let (pieces, mut taking) = mpsc::channel::<Bytes>(PIECES_WAITING);
        let (verdict, decided) = tokio::sync::oneshot::channel::<()>();
        let writing = on_thread(self.tasks, "write a blob", move || {
            while let Some(piece) = taking.blocking_recv() {
                writer.write(&piece)?;
            }
            // The end of the pieces is the end of the content only if whoever sent them says so.
            match decided.blocking_recv() {
                Ok(()) => writer.finish(),
                Err(_) => Ok(()),
            }
        });
        let sending = async {
            self.source
                .blob(self.repository, &descriptor.digest, pieces)
                .await?;
            // Nobody listens when writing failed, which is told below.
            verdict.send(()).ok();
            Ok(())
        };
        let (sent, written): (Result<(), FetchError>, _) = futures::join!(sending, writing);
        sent?;
        written
    }
}
