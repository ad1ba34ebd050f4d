//! For the fuzzer: any bytes, taken for a backup that a server sends.

use std::convert::Infallible;

use bytes::Bytes;
use futures::{FutureExt as _, Stream, stream};

use super::{Frame, Frames};

/// Any bytes are frames up to some place, and the same ones in whatever pieces they arrive. What was not sent is not read.
///
/// # Panics
/// When the promise does not hold.
pub fn frames(soup: &[u8]) {
    let whole = read(soup, soup.len().max(1));
    assert!(
        whole
            .iter()
            .map(|(_, content)| content.len())
            .sum::<usize>()
            <= soup.len()
    );
    for size in [1, 7] {
        assert_eq!(read(soup, size), whole, "in pieces of {size} bytes");
    }
}

/// The frames up to the first that is none, each with the bytes behind it that have come.
fn read(soup: &[u8], size: usize) -> Vec<(Frame, Vec<u8>)> {
    let pieces = soup.chunks(size).map(Bytes::copy_from_slice);
    let pieces: Vec<Result<Bytes, Infallible>> = pieces.map(Ok).collect();
    let all = read_all(Frames::new(stream::iter(pieces)));
    all.now_or_never().expect("all pieces are there")
}

async fn read_all<S>(mut frames: Frames<S>) -> Vec<(Frame, Vec<u8>)>
where
    S: Stream<Item = Result<Bytes, Infallible>> + Unpin,
{
    let mut read = Vec::new();
    while let Ok(frame) = frames.frame().await {
        let mut left = match &frame {
            Frame::File { size, .. } => *size,
            _ => 0,
        };
        let mut content = Vec::new();
        while left > 0
            && let Ok(bytes) = frames.bytes(left).await
        {
            left -= bytes.len() as u64;
            content.extend_from_slice(&bytes);
        }
        read.push((frame, content));
    }
    read
}
