//! Names that lead elsewhere, and streams in pieces of any size.

use std::path::Path;

use bytes::Bytes;

use super::frames::{Frame, Frames};
use super::manifest::place;

#[test]
fn no_name_leads_out_of_the_directory() {
    let refused = [
        "",
        ".",
        "..",
        "../x",
        "a/../../x",
        "/etc/passwd",
        "a/..",
        "manifest.json",
        "./a",
    ];
    for name in refused {
        assert!(
            place(Path::new("/there"), name).is_err(),
            "{name:?} was taken"
        );
    }
    let placed = place(Path::new("/there"), "events/log/1.log").unwrap();
    assert_eq!(placed, Path::new("/there/events/log/1.log"));
}

fn stream(
    bytes: &[u8],
    piece: usize,
) -> Frames<impl futures::Stream<Item = Result<Bytes, std::io::Error>> + Unpin + use<>> {
    let pieces: Vec<_> = bytes
        .chunks(piece)
        .map(|piece| Ok(Bytes::copy_from_slice(piece)))
        .collect();
    Frames::new(futures::stream::iter(pieces))
}

async fn taken(
    frames: &mut Frames<impl futures::Stream<Item = Result<Bytes, std::io::Error>> + Unpin>,
    size: usize,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < size {
        let more = frames.bytes((size - bytes.len()) as u64).await.unwrap();
        bytes.extend_from_slice(&more);
    }
    bytes
}

#[tokio::test]
async fn frames_are_read_from_pieces_of_any_size() {
    let content = b"{not a\nframe}".repeat(20);
    let file = Frame::File {
        name: "a".to_owned(),
        mode: 0o600,
        size: content.len() as u64,
    };
    let end = Frame::End { entries: 1 };
    let sent = [&file.line()[..], &content, &end.line()].concat();
    for piece in [1, 7, 64, 4096] {
        let mut frames = stream(&sent, piece);
        assert_eq!(frames.frame().await.unwrap(), file);
        assert_eq!(taken(&mut frames, content.len()).await, content);
        assert_eq!(frames.frame().await.unwrap(), end);
    }
}

#[tokio::test]
async fn a_stream_that_ends_early_is_no_backup() {
    let file = Frame::File {
        name: "a".to_owned(),
        mode: 0o600,
        size: 10,
    };
    let mut frames = stream(&file.line(), 5);
    frames.frame().await.unwrap();
    assert!(frames.bytes(10).await.is_err());
    let mut endless = stream(&b"x".repeat(100_000), 1000);
    assert!(endless.frame().await.is_err(), "a line has a bound");
}
