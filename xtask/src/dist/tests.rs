use std::io::Read as _;

use super::install::{CONFIGURATION, Content, PROGRAM};
use super::*;

/// The head of a binary for x86_64 with one program header of this kind.
fn program(header: u32) -> Vec<u8> {
    let mut bytes = vec![0; 64 + 56];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    bytes[18] = 62;
    bytes[32] = 64;
    bytes[54] = 56;
    bytes[56] = 1;
    bytes[64..68].copy_from_slice(&header.to_le_bytes());
    bytes
}

fn release() -> Release {
    Release {
        version: "1.2.3".to_owned(),
        epoch: 1_700_000_000,
        elf: Elf::read(&program(1)).unwrap(),
    }
}

fn files() -> install::Files {
    let content = |mode: u32, bytes: &[u8]| Content {
        mode,
        bytes: bytes.to_vec(),
    };
    [
        (PROGRAM.to_owned(), content(0o755, &program(1))),
        (CONFIGURATION.to_owned(), content(0o644, b"# odd\n")),
    ]
    .into()
}

#[test]
fn a_binary_says_for_whom_it_is() {
    let read = |bytes: &[u8]| Elf::read(bytes).map_err(|error| error.to_string());
    assert!(read(&program(1)).unwrap().is_static);
    assert!(
        !read(&program(3)).unwrap().is_static,
        "it has an interpreter"
    );
    assert_eq!(read(&program(1)).unwrap().debian(), "amd64");
    assert_eq!(read(b"#!/bin/sh"), Err("it is no ELF file".to_owned()));
    assert_eq!(read(&program(1)[..66]).unwrap_err(), "it is cut off");
    let own = super::read(&std::env::current_exe().unwrap()).unwrap();
    assert_eq!(read(&own).unwrap().machine, std::env::consts::ARCH);
}

#[test]
fn an_image_is_sound_and_one_flipped_bit_is_found() {
    let image = oci::made(&release(), &files()).unwrap();
    oci::verify(&image).unwrap();
    // Inside of a file, not in the padding of the tar, which nobody reads.
    let needle = b"vnd.oci.image.manifest";
    let mut flipped = 0;
    for at in (0..image.len()).filter(|at| image[*at..].starts_with(needle)) {
        let mut damaged = image.clone();
        damaged[at] ^= 1;
        // The index names a media type that nobody has to believe; the manifest is held to its digest.
        flipped += usize::from(oci::verify(&damaged).is_err());
    }
    assert_eq!(flipped, 1, "the manifest holds its own media type once");
    let mut cut = image;
    cut.truncate(2048);
    oci::verify(&cut).unwrap_err();
}

#[test]
fn the_same_input_makes_the_same_bytes_and_another_time_others() {
    let root = crate::codegen::repository();
    let all = |release: &Release| {
        [
            archive::made(release, &files()).unwrap(),
            deb::made(&root, release, &files()).unwrap(),
            oci::made(release, &files()).unwrap(),
        ]
    };
    assert_eq!(all(&release()), all(&release()));
    let later = Release {
        epoch: release().epoch + 1,
        ..release()
    };
    for (one, other) in all(&release()).into_iter().zip(all(&later)) {
        assert_ne!(one, other);
    }
}

#[test]
fn a_package_has_its_three_members_in_order() {
    let root = crate::codegen::repository();
    let deb = deb::made(&root, &release(), &files()).unwrap();
    let mut rest = &deb[8..];
    let mut names = Vec::new();
    let mut control = String::new();
    while !rest.is_empty() {
        let head = std::str::from_utf8(&rest[..60]).unwrap();
        assert!(head.ends_with("`\n"), "{head:?}");
        let len: usize = head[48..58].trim().parse().unwrap();
        let name = head[..16].trim();
        if name == "control.tar.gz" {
            control = members(&rest[60..60 + len]);
        }
        names.push(name);
        rest = &rest[60 + len + len % 2..];
    }
    assert_eq!(names, ["debian-binary", "control.tar.gz", "data.tar.gz"]);
    for part in [
        "Package: heddle\nVersion: 1.2.3\nArchitecture: amd64\n",
        "Depends: adduser\n",
        "/etc/heddle/heddle.yaml\n",
        "  usr/bin/heddle\n",
        "#!/bin/sh\n# After the files are gone.",
    ] {
        assert!(control.contains(part), "no {part:?} in {control}");
    }
    assert!(
        !control.contains("  etc/heddle/heddle.yaml"),
        "people change it"
    );
}

/// The text of all files of a packed tar.
fn members(packed: &[u8]) -> String {
    let mut text = String::new();
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(packed));
    for entry in archive.entries().unwrap() {
        entry.unwrap().read_to_string(&mut text).unwrap();
    }
    text
}

#[test]
fn an_unknown_option_is_refused_by_name() {
    let refused = |words: &[&str]| Options::parse(words).unwrap_err().to_string();
    assert!(refused(&["--fast"]).contains("--fast"));
    assert_eq!(refused(&["--out"]), "--out needs a path");
    let options = Options::parse(&["--binary", "a", "--out", "b"]).unwrap();
    assert_eq!(options.binary.as_deref(), Some(Path::new("a")));
    assert_eq!(options.out.as_deref(), Some(Path::new("b")));
}

#[test]
fn the_version_is_the_one_of_the_workspace() {
    let version = version(&crate::codegen::repository()).unwrap();
    assert_eq!(version.split('.').count(), 3, "{version}");
}
