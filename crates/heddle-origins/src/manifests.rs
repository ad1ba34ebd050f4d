//! Objects of an old mesh, read from manifests in a directory: for those who have no Kubernetes API to be asked any more.
//!
//! Every file whose name ends in `.yaml`, `.yml` or `.json` is read, in the order of names; directories in it are not. One
//! that cannot be read whole is named, and then nothing is taken: half of an old mesh is none.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use heddle_api::manifest;
use heddle_rt::vfs::Open;
use heddle_rt::{Tasks, Vfs};
use serde_json::Value;

use crate::origin::{Answer, Error, OriginObjects};

/// What a directory may hold.
pub const FILES_MAX: usize = 10_000;
pub const FILE_BYTES_MAX: u64 = 16 << 20;
pub const OBJECTS_MAX: usize = 100_000;

const ENDINGS: [&str; 3] = [".yaml", ".yml", ".json"];

/// A directory with manifests.
#[derive(Clone, Debug)]
pub struct Manifests {
    tasks: Tasks,
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
}

impl Manifests {
    #[must_use]
    pub fn new(tasks: Tasks, vfs: Arc<dyn Vfs>, dir: &Path) -> Self {
        Self {
            tasks,
            vfs,
            dir: dir.to_owned(),
        }
    }
}

impl OriginObjects for Manifests {
    fn objects(&self) -> Answer<'_, Vec<Value>> {
        Box::pin(async {
            let (vfs, dir) = (Arc::clone(&self.vfs), self.dir.clone());
            let read = self
                .tasks
                .blocking("manifests", move || read(&*vfs, &dir))
                .await;
            read.unwrap_or_else(|error| Err(Error::Unavailable(error.to_string())))
        })
    }
}

fn read(vfs: &dyn Vfs, dir: &Path) -> Result<Vec<Value>, Error> {
    let shown = dir.display();
    let names = vfs.list(dir);
    let mut names =
        names.map_err(|error| Error::Unavailable(format!("cannot list {shown}: {error}")))?;
    names.retain(|name| ENDINGS.iter().any(|ending| name.ends_with(ending)));
    if names.len() > FILES_MAX {
        return Err(Error::Invalid(format!(
            "{shown} has more than {FILES_MAX} manifests"
        )));
    }
    let mut objects = Vec::new();
    for name in names {
        let documents = manifest::parse(&name, &text(vfs, dir, &name)?);
        let documents = documents.map_err(|fault| Error::Corrupt(fault.to_string()))?;
        objects.extend(documents.into_iter().map(|document| document.object));
        if objects.len() > OBJECTS_MAX {
            return Err(Error::Invalid(format!(
                "{shown} has more than {OBJECTS_MAX} objects"
            )));
        }
    }
    Ok(objects)
}

fn text(vfs: &dyn Vfs, dir: &Path, name: &str) -> Result<String, Error> {
    let unreadable =
        |error: std::io::Error| Error::Unavailable(format!("cannot read {name}: {error}"));
    let file = vfs
        .open(&dir.join(name), Open::existing())
        .map_err(unreadable)?;
    let bytes = file.len().map_err(unreadable)?;
    if bytes > FILE_BYTES_MAX {
        return Err(Error::Invalid(format!(
            "{name} has {bytes} bytes, and {FILE_BYTES_MAX} are read"
        )));
    }
    let mut text = vec![0; usize::try_from(bytes).unwrap_or_default()];
    file.read_at(0, &mut text).map_err(unreadable)?;
    String::from_utf8(text).map_err(|_| Error::Corrupt(format!("{name} is no text")))
}

#[cfg(test)]
mod tests {
    use heddle_rt::MemoryVfs;

    use super::*;

    const DIR: &str = "/old";

    async fn objects(files: &[(&str, &str)]) -> Result<Vec<Value>, Error> {
        let vfs = MemoryVfs::new().shared();
        vfs.create_dir_all(Path::new(DIR)).unwrap();
        for (name, text) in files {
            let path = Path::new(DIR).join(name);
            vfs.write_atomic(&path, text.as_bytes(), 0o600).unwrap();
        }
        Manifests::new(Tasks::new("test"), vfs, Path::new(DIR))
            .objects()
            .await
    }

    #[tokio::test]
    async fn every_document_of_every_manifest_is_read_in_order() {
        let two = "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\napiVersion: v1\nkind: B\nmetadata: {name: b}\n";
        let one = "{\"apiVersion\": \"v1\", \"kind\": \"C\", \"metadata\": {\"name\": \"c\"}}";
        let files = [("2.json", one), ("1.yaml", two), ("README.md", "no object")];
        let found = objects(&files).await.unwrap();
        let kinds: Vec<&str> = found
            .iter()
            .filter_map(|object| object["kind"].as_str())
            .collect();
        assert_eq!(kinds, ["A", "B", "C"]);
        assert_eq!(objects(&[]).await, Ok(Vec::new()));
    }

    #[tokio::test]
    async fn a_manifest_that_cannot_be_read_is_named_and_nothing_is_taken() {
        let good = (
            "1.json",
            "{\"apiVersion\": \"v1\", \"kind\": \"C\", \"metadata\": {\"name\": \"c\"}}",
        );
        let refused = objects(&[good, ("2.yaml", "a: [")]).await;
        assert!(
            matches!(&refused, Err(Error::Corrupt(why)) if why.contains("2.yaml")),
            "{refused:?}"
        );
        let missing = Manifests::new(
            Tasks::new("test"),
            MemoryVfs::new().shared(),
            Path::new(DIR),
        );
        assert!(matches!(
            missing.objects().await,
            Err(Error::Unavailable(_))
        ));
    }
}
