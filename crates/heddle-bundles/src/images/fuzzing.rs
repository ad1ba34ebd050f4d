//! For the fuzzer: any bytes, taken for a part of an image.

use std::fs;
use std::io::{Seek as _, Write as _};
use std::path::Path;

use super::layer::{self, Budget};
use super::manifest::{self, Document, Packing};
use super::{Config, Digest};

/// Any bytes as a manifest, an index or a configuration.
///
/// # Panics
/// When the promise does not hold.
pub fn manifest(soup: &[u8]) {
    drop(Config::parse(soup));
    drop(manifest::parse_listing(soup));
    for content_type in [
        None,
        Some(manifest::OCI_MANIFEST),
        Some(manifest::OCI_INDEX),
    ] {
        let descriptors = match manifest::parse(soup, content_type) {
            Err(why) => {
                assert!(!why.is_empty());
                continue;
            }
            Ok(Document::Image(image)) => {
                image
                    .layers
                    .iter()
                    .for_each(|layer| drop(manifest::packing(layer)));
                image.layers
            }
            Ok(Document::Index(entries)) => {
                let ours = manifest::for_this_machine(&entries);
                assert!(ours.is_none() || manifest::for_any_machine(&entries).is_some());
                entries
            }
        };
        for descriptor in descriptors {
            assert_eq!(
                Digest::parse(descriptor.digest.as_str()),
                Ok(descriptor.digest)
            );
        }
    }
}

/// Any bytes as a layer, unpacked in a folder of `home`, which is empty: nothing appears beside that folder.
///
/// # Panics
/// When the promise does not hold.
pub fn layer(soup: &[u8], home: &Path) {
    let root = home.join("root");
    let archive = home.join("layer");
    for packing in [Packing::Plain, Packing::Gzip] {
        fs::create_dir(&root).expect("home is empty");
        let mut blob = fs::File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&archive)
            .expect("home can be written");
        blob.write_all(soup).expect("there is room");
        blob.rewind().expect("a file can be rewound");
        drop(layer::apply(
            blob,
            packing,
            &root,
            &Budget::new(1 << 20, 256),
        ));
        let beside = fs::read_dir(home).expect("home is there").count();
        assert_eq!(beside, 2, "a layer wrote outside of its root");
        crate::removal::remove(&root).expect("what was unpacked can be removed");
    }
}
