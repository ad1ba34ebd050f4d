//! One connection over a pipe that takes and gives as little at once as a test wants.

use proptest::prelude::*;

use super::*;
use tokio::io::DuplexStream;

const HEAD: &[u8] = b"POST / HTTP/1.1\r\ncontent-length: 4096\r\n\r\n";

/// A connection whose pipe holds so many bytes, with a head to be sent.
fn pipe(bytes: usize) -> (Single, DuplexStream) {
    let (ours, theirs) = tokio::io::duplex(bytes);
    let mut single = Single::new(Box::new(ours), 1024);
    single.output().extend_from_slice(HEAD);
    (single, theirs)
}

/// Reads a request and says this.
async fn answer(mut theirs: DuplexStream, text: &[u8]) -> (Vec<u8>, DuplexStream) {
    let mut request = vec![0; HEAD.len() + 4096];
    theirs.read_exact(&mut request).await.unwrap();
    theirs.write_all(text).await.unwrap();
    (request, theirs)
}

async fn body_of(single: &mut Single) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(piece) = single.piece().await {
        body.extend_from_slice(&piece.unwrap());
    }
    body
}

#[tokio::test]
async fn a_request_and_its_answer_are_the_same_however_little_fits_at_once() {
    let text = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nce-id: 7\r\n\
        transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let data = Bytes::from(vec![b'x'; 4096]);
    for bytes in 1..=200 {
        let (mut single, theirs) = pipe(bytes);
        let asking = async {
            let head = single.ask(&data).await.unwrap();
            assert_eq!((head.status.as_u16(), head.headers.len()), (200, 1));
            assert_eq!(body_of(&mut single).await, b"abc");
            assert!(single.rest() && single.is_quiet(), "{bytes}");
        };
        let ((), (request, _open)) = tokio::join!(asking, answer(theirs, text));
        assert_eq!(
            (&request[..HEAD.len()], &request[HEAD.len()..]),
            (HEAD, &data[..])
        );
    }
}

#[tokio::test]
async fn an_answer_before_the_request_is_read_is_heard_and_ends_the_connection() {
    let (mut single, mut theirs) = pipe(256);
    let refusal = b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n";
    theirs.write_all(refusal).await.unwrap();
    let head = single.ask(&Bytes::from(vec![b'x'; 4096])).await.unwrap();
    assert_eq!(head.status.as_u16(), 413);
    assert!(!single.rest(), "half a request is still to be read there");
}

#[tokio::test]
async fn whoever_closes_before_all_is_written_has_not_answered() {
    for has_rested in [false, true] {
        let (mut single, theirs) = pipe(256);
        single.has_rested = has_rested;
        drop(theirs);
        let unheard = single
            .ask(&Bytes::from(vec![b'x'; 4096]))
            .await
            .unwrap_err();
        assert_eq!(unheard.is_stale, has_rested, "{unheard:?}");
    }
}

#[tokio::test]
async fn a_connection_that_says_what_nobody_asked_for_is_not_used_again() {
    let text = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK\r\n";
    let (mut single, theirs) = pipe(8192);
    let data = Bytes::from(vec![b'x'; 4096]);
    let (asked, _open) = tokio::join!(single.ask(&data), answer(theirs, text));
    assert_eq!(asked.unwrap().status.as_u16(), 200);
    assert!(
        !single.rest(),
        "the next delivery would take it for its answer"
    );

    let (mut single, theirs) = pipe(8192);
    let (asked, (_, mut theirs)) = tokio::join!(single.ask(&data), answer(theirs, &text[..38]));
    assert_eq!(asked.unwrap().status.as_u16(), 200);
    assert!(single.rest() && single.is_quiet());
    theirs
        .write_all(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
        .await
        .unwrap();
    assert!(!single.is_quiet());
}

/// What became of an answer that came in pieces of this length and then ended: its status and body, or that there is none.
async fn heard(text: &[u8], piece: usize) -> Option<(u16, Option<Vec<u8>>)> {
    let (mut single, mut theirs) = pipe(8192);
    let speaking = async {
        for piece in text.chunks(piece) {
            // Nobody listens any more once an answer is known to be none.
            if theirs.write_all(piece).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(theirs);
    };
    let hearing = async {
        let data = Bytes::from(vec![b'x'; 4096]);
        let head = single.ask(&data).await.ok()?;
        let mut body = Vec::new();
        while let Some(piece) = single.piece().await {
            match piece {
                Ok(bytes) => body.extend_from_slice(&bytes),
                Err(_) => return Some((head.status.as_u16(), None)),
            }
        }
        Some((head.status.as_u16(), Some(body)))
    };
    tokio::join!(speaking, hearing).1
}

fn fragment() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.0 500 Oops\r\n",
        "HTTP/1.1 204 No Content\r\n",
        "content-length: 3\r\n",
        "content-length: 4\r\n",
        "transfer-encoding: chunked\r\n",
        "ce-id: 1\r\n",
        "\r\n",
        "\r",
        "\n",
        "3\r\n",
        "abc",
        "0\r\n",
        "fffffffffffffff\r\n",
        ": ",
        "\0",
    ])
}

proptest! {
    #[test]
    fn what_an_answer_says_does_not_depend_on_how_it_comes(
        mut fragments in prop::collection::vec(fragment(), 0..8),
        piece in 1_usize..16,
    ) {
        // Most of what is random is no answer at all.
        fragments.insert(0, "HTTP/1.1 200 OK\r\n");
        let text = fragments.concat();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (whole, pieces) = runtime.block_on(async {
            (heard(text.as_bytes(), text.len()).await, heard(text.as_bytes(), piece).await)
        });
        prop_assert_eq!(whole, pieces, "{:?}", text);
    }
}
