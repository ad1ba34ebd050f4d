//! Layers that are built to break out, and those that are only unusual.

#![expect(
    clippy::disallowed_methods,
    reason = "layers come from files that are made here"
)]

use std::os::unix::fs::MetadataExt as _;

use tar::Header;
use tempfile::TempDir;

use super::*;

/// An archive, entry by entry, without the checks that a sound tool makes.
#[derive(Default)]
struct Layer(Vec<u8>);

impl Layer {
    fn entry(
        mut self,
        kind: EntryType,
        name: &[u8],
        link: &[u8],
        mode: u32,
        content: &[u8],
    ) -> Self {
        let mut header = Header::new_old();
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.as_old_mut().linkname[..link.len()].copy_from_slice(link);
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(content.len() as u64);
        header.set_cksum();
        self.0.extend(header.as_bytes());
        self.0.extend(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    fn file(self, name: &str, text: &str) -> Self {
        self.entry(
            EntryType::Regular,
            name.as_bytes(),
            b"",
            0o640,
            text.as_bytes(),
        )
    }

    fn dir(self, name: &str) -> Self {
        self.entry(EntryType::Directory, name.as_bytes(), b"", 0o700, b"")
    }

    fn link(self, kind: EntryType, name: &str, to: &str) -> Self {
        self.entry(kind, name.as_bytes(), to.as_bytes(), 0o777, b"")
    }
}

struct Root {
    dir: TempDir,
    budget: Budget,
}

impl Root {
    fn new() -> Self {
        let root = Self {
            dir: TempDir::new().unwrap(),
            budget: Budget::new(1 << 20, 1000),
        };
        tree::make_root(&root.path("")).unwrap();
        root
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join("root").join(path)
    }

    fn apply(&self, layer: Layer) -> Result<(), Error> {
        let mut bytes = layer.0;
        bytes.extend([0; 1024]);
        self.apply_bytes(&bytes, Packing::Plain)
    }

    fn apply_bytes(&self, bytes: &[u8], packing: Packing) -> Result<(), Error> {
        let blob = self.dir.path().join("blob");
        fs::write(&blob, bytes).unwrap();
        apply(
            File::open(blob).unwrap(),
            packing,
            &self.path(""),
            &self.budget,
        )
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_default()
    }

    fn mode(&self, path: &str) -> u32 {
        fs::symlink_metadata(self.path(path)).unwrap().mode() & 0o7777
    }
}

#[test]
fn nothing_is_written_outside_of_the_root() {
    let outside = TempDir::new().unwrap();
    let there = outside.path().to_str().unwrap();
    let victim = outside.path().join("victim");
    fs::write(&victim, "untouched").unwrap();
    let symlink = |name, to| Layer::default().link(EntryType::Symlink, name, to);
    let attacks = [
        Layer::default().file("../escaped", "x"),
        Layer::default().file("a/../../escaped", "x"),
        symlink("door", there).file("door/escaped", "x"),
        symlink("door", there).dir("door/escaped"),
        symlink("door", there).file("door/.wh.victim", ""),
        symlink("door", there).file("door/.wh..wh..opq", ""),
        symlink("door", there).link(EntryType::Symlink, "door/escaped", "x"),
        symlink("door", there).link(EntryType::Link, "inside", "door/victim"),
        symlink("a", "b")
            .link(EntryType::Symlink, "b", there)
            .file("a/escaped", "x"),
        Layer::default().link(EntryType::Link, "inside", victim.to_str().unwrap()),
        Layer::default().link(EntryType::Link, "inside", "../../../victim"),
        Layer::default()
            .dir("d")
            .link(EntryType::Link, "inside", "d"),
        Layer::default().link(EntryType::Link, "self", "self"),
        Layer::default().file("f", "x").file("f/below", "x"),
        Layer::default().file("d/.wh...", ""),
        Layer::default().dir("d").file("d/.wh...", ""),
        Layer::default().entry(EntryType::Char, b"null", b"", 0o666, b""),
        Layer::default().entry(EntryType::Block, b"sda", b"", 0o666, b""),
        Layer::default().entry(EntryType::Fifo, b"pipe", b"", 0o666, b""),
        Layer::default().entry(EntryType::GNUSparse, b"sparse", b"", 0o666, b""),
    ];
    for (index, attack) in attacks.into_iter().enumerate() {
        let root = Root::new();
        let ended = root.apply(attack);
        // Taking away from a directory that is not there is not wrong, only useless.
        assert!(ended.is_err() || index == 14, "attack {index}");
        assert_eq!(
            tree::names(outside.path()).unwrap(),
            ["victim"],
            "attack {index}"
        );
        assert_eq!(
            fs::read_to_string(&victim).unwrap(),
            "untouched",
            "attack {index}"
        );
        assert_eq!(
            tree::names(root.dir.path()).unwrap(),
            ["blob", "root"],
            "attack {index}"
        );
    }
}

#[test]
fn a_symlink_is_replaced_and_not_followed() {
    let root = Root::new();
    let outside = root.dir.path().join("outside");
    fs::write(&outside, "untouched").unwrap();
    let link = Layer::default().link(EntryType::Symlink, "file", outside.to_str().unwrap());
    root.apply(link).unwrap();
    root.apply(Layer::default().file("file", "new")).unwrap();
    assert_eq!(root.text("file"), "new");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "untouched");
    let absolute = Layer::default()
        .link(EntryType::Symlink, "bin", "/usr/bin")
        .file("/etc/motd", "hi");
    root.apply(absolute).unwrap();
    assert_eq!(
        fs::read_link(root.path("bin")).unwrap(),
        Path::new("/usr/bin")
    );
    assert_eq!(
        root.text("etc/motd"),
        "hi",
        "an absolute path means the root of the image"
    );
}

#[test]
fn whiteouts_mean_the_layers_below_whatever_their_order() {
    let below = || {
        Layer::default()
            .dir("d")
            .file("d/old", "1")
            .file("d/e/old", "1")
            .file("keep", "1")
    };
    for opaque_first in [true, false] {
        let root = Root::new();
        root.apply(below()).unwrap();
        let opaque = |layer: Layer| layer.file("d/.wh..wh..opq", "");
        let new = |layer: Layer| layer.dir("d").file("d/e/new", "2").file("d/new", "2");
        let layer = if opaque_first {
            new(opaque(Layer::default()))
        } else {
            opaque(new(Layer::default()))
        };
        root.apply(layer).unwrap();
        assert_eq!(tree::names(&root.path("d")).unwrap(), ["e", "new"]);
        assert_eq!(tree::names(&root.path("d/e")).unwrap(), ["new"]);
        assert_eq!(root.text("keep"), "1");
    }
    let root = Root::new();
    root.apply(below()).unwrap();
    let layer = Layer::default()
        .file(".wh.d", "")
        .file(".wh.absent", "")
        .file(".wh..wh.plnk", "")
        .file("no/.wh.x", "");
    root.apply(layer).unwrap();
    assert_eq!(tree::names(&root.path("")).unwrap(), ["keep"]);
}

#[test]
fn everybody_may_read_and_nobody_becomes_somebody_else() {
    let root = Root::new();
    let layer = Layer::default()
        .entry(EntryType::Directory, b"d/", b"", 0o1700, b"")
        .entry(EntryType::Regular, b"d/su", b"", 0o6750, b"x")
        .entry(EntryType::Regular, b"d/secret", b"", 0o600, b"x")
        .entry(EntryType::Regular, b"d/none", b"", 0, b"x")
        .link(EntryType::Link, "d/again", "d/secret");
    root.apply(layer).unwrap();
    assert_eq!((root.mode("d"), root.mode("d/su")), (0o705, 0o755));
    assert_eq!((root.mode("d/secret"), root.mode("d/none")), (0o604, 0o604));
    let inode = |path| fs::metadata(root.path(path)).unwrap().ino();
    assert_eq!(inode("d/again"), inode("d/secret"));
}

#[test]
fn types_change_from_layer_to_layer() {
    let root = Root::new();
    root.apply(Layer::default().file("a/b", "1").file("c", "1"))
        .unwrap();
    root.apply(Layer::default().file("a", "file").dir("c").file("c/d", "2"))
        .unwrap();
    assert_eq!(
        (root.text("a").as_str(), root.text("c/d").as_str()),
        ("file", "2")
    );
}

#[test]
fn long_names_are_understood_and_endless_ones_refused() {
    let root = Root::new();
    let name = format!("{}/file", "long".repeat(50));
    let pax = |key: &str, value: &str| {
        let length = key.len() + value.len() + 3;
        let whole = length + (length + 3).to_string().len();
        format!("{whole} {key}={value}\n")
    };
    let long = |kind, text: &str| Layer::default().entry(kind, b"meta", b"", 0, text.as_bytes());
    root.apply(long(EntryType::GNULongName, &format!("{name}1\0")).file("cut", "1"))
        .unwrap();
    root.apply(long(EntryType::XHeader, &pax("path", &format!("{name}2"))).file("cut", "2"))
        .unwrap();
    assert_eq!(
        (
            root.text(&format!("{name}1")),
            root.text(&format!("{name}2"))
        ),
        ("1".into(), "2".into())
    );
    let escape = long(EntryType::XHeader, &pax("path", "../escaped")).file("innocent", "1");
    assert!(root.apply(escape).is_err());
    let endless = "x".repeat(EXTENSION_BYTES_MAX as usize + 1);
    let root = Root {
        budget: Budget::new(u64::MAX, 1000),
        ..Root::new()
    };
    let refused = root
        .apply(long(EntryType::GNULongName, &endless).file("f", ""))
        .unwrap_err();
    assert!(
        refused.to_string().contains("more than a megabyte"),
        "{refused}"
    );
    assert!(
        root.apply(long(EntryType::XHeader, &pax("size", "9")).file("f", "1"))
            .is_err()
    );
}

#[test]
fn an_archive_that_ends_too_early_or_is_none_is_an_error() {
    let whole = Layer::default().file("file", &"x".repeat(600)).0;
    let root = Root::new();
    assert!(
        root.apply_bytes(&whole[..700], Packing::Plain).is_err(),
        "cut in a file"
    );
    assert!(
        root.apply_bytes(&whole[..300], Packing::Plain).is_err(),
        "cut in a header"
    );
    assert!(
        root.apply_bytes(b"no archive at all, but long enough", Packing::Gzip)
            .is_err()
    );
    let zstd = root
        .apply_bytes(&[0x28, 0xb5, 0x2f, 0xfd, 0, 0], Packing::Plain)
        .unwrap_err();
    assert!(zstd.to_string().contains("zstd"), "{zstd}");
}

#[test]
fn directories_may_lie_so_deep_in_each_other_and_no_deeper() {
    let deep = |parts: usize| {
        let name = vec!["d"; parts].join("/") + "\0";
        Layer::default()
            .entry(
                EntryType::GNULongName,
                b"././@LongLink",
                b"",
                0,
                name.as_bytes(),
            )
            .dir("short")
    };
    Root::new().apply(deep(DEPTH_MAX)).unwrap();
    let refused = Root::new().apply(deep(DEPTH_MAX + 1)).unwrap_err();
    assert!(refused.to_string().contains("deep"), "{refused}");
}

#[test]
fn a_file_with_two_names_counts_once() {
    let root = Root::new();
    fs::write(root.path("one"), [0; 1000]).unwrap();
    fs::hard_link(root.path("one"), root.path("two")).unwrap();
    assert_eq!(tree::size(&root.path("")).unwrap(), 1000);
}
