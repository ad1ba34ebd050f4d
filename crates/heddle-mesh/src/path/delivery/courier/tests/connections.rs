//! Connections are used again, replaced when they are stale, and bounded.

use parking_lot::Mutex;

use super::*;

const NO_CONTENT: &str = "HTTP/1.1 204 No Content\r\n\r\n";

#[tokio::test]
async fn one_delivery_after_another_uses_one_connection() {
    // Answers of every sort leave the connection usable when they end.
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let server = Server::start(move |asked| match asked.request % 3 {
        0 => Act::say(NO_CONTENT),
        1 => Act::say("HTTP/1.1 500 Oops\r\ncontent-length: 5\r\n\r\nwrong"),
        _ => Act::say(chunked),
    })
    .await;
    let courier = courier(Limits::default());
    let address = courier.address(&server.url(), None).unwrap();
    for _ in 0..30 {
        send(&courier, &address, PATIENT).await;
    }
    assert_eq!((server.connections(), server.requests().len()), (1, 30));
}

#[tokio::test]
async fn addresses_of_one_origin_share_its_connections() {
    let server = Server::start(|_| Act::say(NO_CONTENT)).await;
    let courier = courier(Limits::default());
    let paths = ["", "/a", "/b?c"];
    let addresses = paths.map(|path| {
        let url = format!("http://{}{path}", server.address());
        courier.address(&url, None).unwrap()
    });
    for address in &addresses {
        assert_eq!(send(&courier, address, PATIENT).await, accepted(204));
    }
    assert_eq!((server.connections(), server.requests().len()), (1, 3));
}

#[tokio::test]
async fn a_connection_that_was_closed_while_it_rested_is_replaced_without_a_word() {
    // The second request of each connection meets a peer that has just hung up.
    let server = Server::start(|asked| match asked.request {
        1 => Act::say(NO_CONTENT),
        _ => Act::say_and_close(""),
    })
    .await;
    let courier = courier(Limits::default());
    let address = courier.address(&server.url(), None).unwrap();
    for _ in 0..5 {
        assert_eq!(send(&courier, &address, PATIENT).await, accepted(204));
    }
    assert_eq!(server.connections(), 5);
    assert_eq!(server.requests().len(), 9, "all but the first went twice");
}

#[tokio::test]
async fn an_answer_that_began_is_never_replaced_silently() {
    let server = Server::start(|asked| match asked.request {
        1 => Act::say(NO_CONTENT),
        _ => Act::say_and_close("HTTP/1.1 2"),
    })
    .await;
    let courier = courier(Limits::default());
    let address = courier.address(&server.url(), None).unwrap();
    assert_eq!(send(&courier, &address, PATIENT).await, accepted(204));
    let error = error_of(send(&courier, &address, PATIENT).await);
    assert_eq!(
        error,
        "the connection was closed before the answer was complete"
    );
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_destination_that_always_hangs_up_is_asked_once_for_each_attempt() {
    let server = Server::start(|_| Act::say_and_close("")).await;
    let courier = courier(Limits::default());
    let address = courier.address(&server.url(), None).unwrap();
    for _ in 0..3 {
        error_of(send(&courier, &address, PATIENT).await);
    }
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn connections_that_cannot_be_used_again_are_not() {
    let acts = [
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nuntil the end",
        "HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n",
    ];
    for act in acts {
        let server = Server::start(move |_| Act::say_and_close(act)).await;
        let courier = courier(Limits::default());
        let address = courier.address(&server.url(), None).unwrap();
        for _ in 0..3 {
            assert_eq!(send(&courier, &address, PATIENT).await, accepted(200));
        }
        assert_eq!((server.connections(), server.requests().len()), (3, 3));
    }
}

#[tokio::test]
async fn no_more_connections_rest_than_are_allowed_and_none_for_too_long() {
    let none = Limits {
        idle_max: 0,
        ..Limits::default()
    };
    let no_time = Limits {
        idle_timeout: Duration::ZERO,
        ..Limits::default()
    };
    for limits in [none, no_time] {
        let server = Server::start(|_| Act::say(NO_CONTENT)).await;
        let courier = courier(limits);
        let address = courier.address(&server.url(), None).unwrap();
        for _ in 0..3 {
            send(&courier, &address, PATIENT).await;
        }
        assert_eq!(server.connections(), 3, "{limits:?}");
    }
}

#[tokio::test]
async fn a_connection_that_rests_too_long_is_closed() {
    let server = Server::start(|_| Act::hang(NO_CONTENT)).await;
    let courier = courier(Limits {
        idle_timeout: HASTY,
        ..Limits::default()
    });
    let address = courier.address(&server.url(), None).unwrap();
    assert_eq!(send(&courier, &address, PATIENT).await, accepted(204));
    server.let_go().await;
}

#[tokio::test]
async fn an_origin_without_an_address_keeps_no_connection() {
    let server = Server::start(|_| Act::hang(NO_CONTENT)).await;
    let courier = courier(Limits::default());
    let address = courier.address(&server.url(), None).unwrap();
    assert_eq!(send(&courier, &address, PATIENT).await, accepted(204));
    drop(address);
    server.let_go().await;
}

#[tokio::test]
async fn no_more_deliveries_are_open_than_are_allowed() {
    let server = Server::start(|asked| match asked.connection {
        1 => Act::hang(""),
        _ => Act::say(NO_CONTENT),
    })
    .await;
    let courier = courier(Limits {
        open_max: 1,
        ..Limits::default()
    });
    let address = courier.address(&server.url(), None).unwrap();
    let order = Mutex::new(Vec::new());
    let first = async {
        let error = error_of(send(&courier, &address, HASTY).await);
        order.lock().push("first");
        error
    };
    let second = async {
        let ended = send(&courier, &address, PATIENT).await;
        order.lock().push("second");
        ended
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(first, "no answer within 100ms");
    assert_eq!(second, accepted(204));
    assert_eq!(
        *order.lock(),
        ["first", "second"],
        "one waits for the other"
    );
}

#[tokio::test]
async fn a_connection_that_rests_is_closed_for_one_elsewhere() {
    let one = Server::start(|_| Act::say(NO_CONTENT)).await;
    let other = Server::start(|_| Act::say(NO_CONTENT)).await;
    let third = Server::start(|_| Act::say(NO_CONTENT)).await;
    // Whichever of them it is, and whatever its address.
    for (round, (quiet, busy)) in [(&one, &other), (&other, &one)].into_iter().enumerate() {
        let courier = courier(Limits {
            all_max: 2,
            ..Limits::default()
        });
        let [quiet_address, busy_address, third_address] =
            [quiet, busy, &third].map(|server| courier.address(&server.url(), None).unwrap());
        for address in [&quiet_address, &busy_address, &busy_address, &third_address] {
            assert_eq!(send(&courier, address, PATIENT).await, accepted(204));
        }
        let resting = [&quiet_address, &busy_address, &third_address].map(|to| to.pool.resting());
        assert_eq!(resting, [0, 1, 1], "the one that rested longest had to go");
        assert_eq!(send(&courier, &busy_address, PATIENT).await, accepted(204));
        assert_eq!(busy.connections(), round + 1);
    }
}

#[tokio::test]
async fn of_one_origin_the_connection_that_rested_longest_goes_first() {
    let many = Server::start(|_| Act::say(NO_CONTENT)).await;
    let other = Server::start(|_| Act::say(NO_CONTENT)).await;
    let courier = courier(Limits {
        all_max: 5,
        ..Limits::default()
    });
    let [many_address, other_address] =
        [&many, &other].map(|server| courier.address(&server.url(), None).unwrap());
    let sending = (0..5).map(|_| send(&courier, &many_address, PATIENT));
    futures::future::join_all(sending).await;
    assert_eq!(many_address.pool.resting(), 5);
    let oldest = many_address.pool.rests_since();
    assert_eq!(send(&courier, &other_address, PATIENT).await, accepted(204));
    assert_eq!(many_address.pool.resting(), 4);
    assert!(many_address.pool.rests_since() > oldest);
}

#[tokio::test]
async fn when_all_connections_are_at_work_others_wait_for_one() {
    let stalled = Server::start(|_| Act::hang("")).await;
    let working = Server::start(|_| Act::say(NO_CONTENT)).await;
    let other = Server::start(|_| Act::say(NO_CONTENT)).await;
    let courier = courier(Limits {
        all_max: 2,
        ..Limits::default()
    });
    let [stalled_address, working_address, other_address] =
        [&stalled, &working, &other].map(|server| courier.address(&server.url(), None).unwrap());
    let stalls = send(&courier, &stalled_address, PATIENT);
    let works = async {
        while stalled.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        // One place is left, and taken in turns: whoever has done its part does not keep it while the other waits.
        for _ in 0..50 {
            let both = tokio::join!(
                send(&courier, &working_address, PATIENT),
                send(&courier, &other_address, PATIENT)
            );
            assert_eq!(both, (accepted(204), accepted(204)));
            let resting = working_address.pool.resting() + other_address.pool.resting();
            assert!(resting <= 1, "{resting}");
        }
    };
    tokio::select! {
        ended = stalls => panic!("nobody answered: {ended:?}"),
        () = works => {}
    }
    stalled.let_go().await;
}

#[tokio::test]
async fn a_connection_that_could_not_be_made_leaves_its_place_to_others() {
    let server = Server::start(|_| Act::say(NO_CONTENT)).await;
    let courier = courier(Limits {
        all_max: 1,
        ..Limits::default()
    });
    let nobody = {
        let gone = Server::start(|_| Act::say(NO_CONTENT)).await;
        courier.address(&gone.url(), None).unwrap()
    };
    let address = courier.address(&server.url(), None).unwrap();
    for _ in 0..3 {
        error_of(send(&courier, &nobody, PATIENT).await);
        assert_eq!(send(&courier, &address, PATIENT).await, accepted(204));
    }
}

#[tokio::test]
async fn a_delivery_that_is_dropped_lets_go_of_its_connection() {
    let server = Server::start(|_| Act::hang("")).await;
    let courier = courier(Limits::default());
    let address = courier.address(&server.url(), None).unwrap();
    let asked = async {
        while server.requests().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        ended = send(&courier, &address, PATIENT) => panic!("nobody answered: {ended:?}"),
        () = asked => {}
    }
    server.let_go().await;
}

#[tokio::test]
async fn a_connection_that_was_closed_while_it_rested_is_not_kept() {
    let server = Server::start(|_| Act::say_and_close(NO_CONTENT)).await;
    let courier = courier(Limits::default());
    let address = courier.address(&server.url(), None).unwrap();
    assert_eq!(send(&courier, &address, PATIENT).await, accepted(204));
    while address.pool.resting() > 0 {
        courier.inner.deps.outgoing.sweep();
        tokio::task::yield_now().await;
    }
}
