//! What a program that may use the network reaches: what the rules allow, through the proxy, and nothing else.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use heddle_api::action::{Run, RunEnd};
use heddle_bundles::sandbox::NetworkRules;
use heddle_rt::net::egress::Egress;
use serde_json::json;

use crate::stage::{self, Stage, succeeded, until};
use crate::{Promise, promises};

pub(crate) const PROMISES: &[Promise] = promises![
    the_network_is_reached_through_the_proxy_and_not_past_it,
    without_the_right_to_it_there_is_no_proxy,
    what_egress_forbids_is_refused_and_named_in_the_log,
    heddles_own_listeners_are_out_of_reach_however_they_are_spelled,
    a_redirect_leads_to_no_forbidden_address,
    what_a_restarted_server_says_counts_from_then_on,
    connections_at_once_are_bounded_and_further_ones_wait,
];

/// Answers every request, after `hold` lets it.
#[derive(Default)]
struct Server {
    seen: AtomicUsize,
    open: AtomicUsize,
    open_max: AtomicUsize,
    hold: AtomicBool,
}

impl Server {
    fn start(address: &str, answer: String) -> (Arc<Self>, SocketAddr) {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let server = Arc::new(Self::default());
        let this = server.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let (this, answer) = (this.clone(), answer.clone());
                std::thread::spawn(move || this.serve(connection.unwrap(), &answer));
            }
        });
        (server, address)
    }

    fn serve(&self, mut connection: TcpStream, answer: &str) {
        self.seen.fetch_add(1, Ordering::SeqCst);
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && connection.read(&mut byte).unwrap_or(0) > 0 {
            head.push(byte[0]);
        }
        let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.open_max.fetch_max(open, Ordering::SeqCst);
        until("the release", || !self.hold.load(Ordering::SeqCst));
        self.open.fetch_sub(1, Ordering::SeqCst);
        connection.write_all(answer.as_bytes()).ok();
    }

    fn seen(&self) -> usize {
        self.seen.load(Ordering::SeqCst)
    }
}

fn hello() -> String {
    "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n".to_owned()
}

/// The default policy, except for these ranges.
fn without(deny: &[&str]) -> NetworkRules {
    NetworkRules {
        egress: Egress {
            deny: deny.iter().map(|text| text.parse().unwrap()).collect(),
            ..Egress::default()
        },
        own_listeners: Vec::new(),
    }
}

fn stage(script: &str, rules: NetworkRules) -> Stage {
    Stage::with_options(script, |options| options.network = rules)
}

fn networked(port: u16) -> Run {
    let mut asked = stage::run_with(json!({ "port": port }));
    asked.limits.network = true;
    asked
}

fn ran(stage: &Stage, port: u16) -> RunEnd {
    let end = stage.run(&networked(port));
    succeeded(&end);
    end
}

fn the_network_is_reached_through_the_proxy_and_not_past_it() {
    let (server, address) = Server::start("127.0.0.1:0", hello());
    let stage = stage(
        r#"at=127.0.0.1:$(cat /run/bundle/variables/port)
        wget -q -O /data/plain http://$at/x || exit 1
        printf 'CONNECT %s HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n' $at | nc 127.0.0.1 3128 > /data/tunnel || exit 2
        nc -w 5 ${at%:*} ${at#*:} < /dev/null && exit 3
        env -u http_proxy wget -q -O - http://$at/x && exit 4
        exit 0"#,
        NetworkRules::default(),
    );
    ran(&stage, address.port());
    let read = |name| std::fs::read_to_string(stage.data(name)).unwrap();
    assert_eq!(read("plain"), "hello\n");
    let tunnel = read("tunnel");
    assert!(tunnel.starts_with("HTTP/1.1 200 "), "{tunnel}");
    assert!(tunnel.ends_with("hello\n"), "{tunnel}");
    assert_eq!(server.seen(), 2);
}

fn without_the_right_to_it_there_is_no_proxy() {
    let stage = stage(
        r#"env | grep -i _proxy && exit 1
        nc -w 5 127.0.0.1 3128 < /dev/null && exit 2
        exit 0"#,
        NetworkRules::default(),
    );
    succeeded(&stage.run(&stage::run()));
}

fn what_egress_forbids_is_refused_and_named_in_the_log() {
    let (server, address) = Server::start("127.0.0.1:0", hello());
    // A name is what it leads to.
    let stage = stage(
        r#"port=$(cat /run/bundle/variables/port)
        for host in 127.0.0.1 localhost 127.1 '[::ffff:127.0.0.1]' 169.254.169.254; do
            wget -q -O - http://$host:$port/ && exit 1
        done
        printf 'CONNECT localhost:%s HTTP/1.1\r\n\r\n' $port | nc 127.0.0.1 3128 > /data/answer
        exit 0"#,
        without(&["127.0.0.0/8", "::1"]),
    );
    let port = address.port();
    let log = ran(&stage, port).log_tail;
    for refused in [
        format!("[heddle] connection to 127.0.0.1:{port} refused: connections to 127.0.0.1, "),
        format!("[heddle] connection to localhost:{port} refused: "),
        "a loopback address, are not allowed by egressDeny 127.0.0.0/8\n".to_owned(),
        format!("[heddle] connection to 169.254.169.254:{port} refused: "),
        "an address of cloud metadata, are not allowed unless egressAllow has it\n".to_owned(),
    ] {
        assert!(log.contains(&refused), "{refused}: {log}");
    }
    let answer = std::fs::read_to_string(stage.data("answer")).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert!(answer.contains("a loopback address"), "{answer}");
    assert_eq!(server.seen(), 0);
}

fn heddles_own_listeners_are_out_of_reach_however_they_are_spelled() {
    // As it listens on one address, and on all of them.
    for bound in ["127.0.0.1:0", "0.0.0.0:0"] {
        let (server, address) = Server::start(bound, hello());
        let stage = stage(
            r#"port=$(cat /run/bundle/variables/port)
            for host in 127.0.0.1 localhost 127.1 2130706433 0x7f000001 '[::ffff:127.0.0.1]' '[::ffff:7f00:1]' \
                0.0.0.0 0 '[::]' LOCALHOST 127.000.000.001; do
                printf 'CONNECT %s:%s HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n' "$host" $port | nc 127.0.0.1 3128 > /data/answer
                grep -q '^HTTP/1.1 [45]' /data/answer || { cat /data/answer; echo "reached as $host"; exit 1; }
                wget -q -O - "http://$host:$port/" && { echo "got as $host"; exit 2; }
            done
            exit 0"#,
            NetworkRules {
                own_listeners: vec![address],
                ..NetworkRules::default()
            },
        );
        let port = address.port();
        let log = ran(&stage, port).log_tail;
        let refused =
            format!("connection to 127.0.0.1:{port} refused: heddle itself listens there");
        assert!(log.contains(&refused), "{log}");
        assert_eq!(server.seen(), 0, "{bound}");
    }
}

fn a_redirect_leads_to_no_forbidden_address() {
    let (forbidden, target) = Server::start("127.0.0.3:0", hello());
    let redirect =
        format!("HTTP/1.1 302 Found\r\nLocation: http://{target}/\r\nContent-Length: 0\r\n\r\n");
    let (allowed, address) = Server::start("127.0.0.2:0", redirect);
    let stage = stage(
        "wget -q -O - http://127.0.0.2:$(cat /run/bundle/variables/port)/ && exit 1; exit 0",
        without(&["127.0.0.3"]),
    );
    let log = ran(&stage, address.port()).log_tail;
    assert!(
        log.contains(&format!("connection to {target} refused")),
        "{log}"
    );
    assert_eq!((allowed.seen(), forbidden.seen()), (1, 0));
}

/// The shim of a run goes on when its server is gone, and the next one may have been told otherwise.
fn what_a_restarted_server_says_counts_from_then_on() {
    let (server, address) = Server::start("127.0.0.1:0", hello());
    let stage = stage(
        r#"at=http://127.0.0.1:$(cat /run/bundle/variables/port)/
        wget -q -O /data/first $at || exit 1
        while [ ! -e /data/go ]; do sleep 0.01; done
        wget -q -O - $at && exit 2
        exit 0"#,
        NetworkRules::default(),
    );
    let asked = networked(address.port());
    stage.start(&asked);
    until("the first answer", || server.seen() == 1);
    let mut options = stage::options(&stage.directory.path().join("sandbox"));
    options.network.own_listeners = vec![address];
    let next = stage::open(options);
    std::fs::write(stage.data("go"), "").unwrap();
    succeeded(&stage::end_of(&next, &asked.id));
    assert_eq!(server.seen(), 1);
}

fn connections_at_once_are_bounded_and_further_ones_wait() {
    let (server, address) = Server::start("127.0.0.1:0", hello());
    server.hold.store(true, Ordering::SeqCst);
    let stage = stage(
        r#"at=http://127.0.0.1:$(cat /run/bundle/variables/port)/
        for i in $(seq 80); do wget -q -O /data/$i $at & done
        wait
        [ $(cat /data/* | wc -l) = 80 ]"#,
        NetworkRules::default(),
    );
    let mut asked = networked(address.port());
    asked.limits.processes = 200;
    asked.limits.memory_bytes = 512 << 20;
    stage.start(&asked);
    until("the bound", || {
        let log = stage.runner.log(&asked.id).unwrap();
        log.contains("[heddle] 64 connections are open") && server.open.load(Ordering::SeqCst) >= 64
    });
    server.hold.store(false, Ordering::SeqCst);
    succeeded(&stage.end(&asked.id));
    assert_eq!(server.seen(), 80);
    assert_eq!(server.open_max.load(Ordering::SeqCst), 64);
}
