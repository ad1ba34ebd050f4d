//! What a program cannot reach.

use std::net::TcpListener;

use heddle_api::action::Outcome;

use crate::stage::{self, Stage, is_root, run, succeeded};
use crate::{Promise, promises};

pub(crate) const PROMISES: &[Promise] = promises![
    the_root_cannot_be_written_and_what_is_its_own_can,
    processes_and_files_of_the_machine_are_not_there,
    the_network_of_the_machine_is_out_of_reach,
    a_program_has_no_capabilities_and_gains_none,
    a_program_runs_as_a_user_of_its_own,
    files_that_the_server_has_open_are_not_inherited,
    an_image_whose_mount_point_is_a_link_is_refused,
    system_calls_that_no_action_needs_are_refused,
    what_a_program_is_told_is_in_no_list_of_processes,
];

fn the_root_cannot_be_written_and_what_is_its_own_can() {
    let stage = Stage::with(
        r#"! touch /new || exit 1
        ! echo x > /bin/entrypoint || exit 2
        ! rm /bin/busybox || exit 3
        ! touch /dev/new || exit 4
        ! mount -o remount,rw / || exit 5
        touch /tmp/a /data/b /out/c || exit 6
        echo x > /dev/null && head -c 1 /dev/urandom > /dev/null || exit 7"#,
    );
    succeeded(&stage.run(&run()));
    assert!(!stage.root.join("new").exists());
}

fn processes_and_files_of_the_machine_are_not_there() {
    let stage = Stage::with(
        r#"[ "$(ls /proc | grep -c '^[0-9]')" -le 5 ] || exit 1
        for pid in /proc/[0-9]*; do
            ! grep -q MARKED-OUTSIDE $pid/cmdline 2>/dev/null || exit 2
        done
        ! ls /etc/passwd /root /home /proc/1/root/etc 2>/dev/null || exit 3
        ! cat /proc/1/environ 2>/dev/null || exit 4
        ! (echo '{"exited": 0}' > /proc/1/fd/0) 2>/dev/null || exit 5
        ! ls /proc/1/root/ /proc/1/cwd/ 2>/dev/null || exit 7
        kill -9 1; kill -SEGV 1; kill -SEGV 1; sleep 0.1
        [ -d /proc/1 ] || exit 6"#,
    );
    // Waits for a line that never comes.
    let mut marked = std::process::Command::new(stage::busybox())
        .args(["sh", "-c", "read line; : MARKED-OUTSIDE"])
        .env_clear()
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    stage::until("the marked process", || {
        stage::processes_with("MARKED-OUTSIDE").len() == 1
    });
    let end = stage.run(&run());
    marked.kill().unwrap();
    marked.wait().unwrap();
    succeeded(&end);
}

/// A listener of this machine, on loopback: also for those who may use the network, which they do through the proxy.
fn the_network_of_the_machine_is_out_of_reach() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let stage = Stage::with(
        "echo hello | nc -w 5 127.0.0.1 $(cat /run/bundle/variables/port) && exit 0; exit 9",
    );
    for network in [false, true] {
        let mut asked = stage::run_with(serde_json::json!({ "port": port }));
        asked.limits.network = network;
        assert_eq!(stage::failed_with(&stage.run(&asked)).0, 9);
    }
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nobody came");
}

fn a_program_has_no_capabilities_and_gains_none() {
    let stage = Stage::with(
        r#"grep -E '^(Cap(Inh|Prm|Eff|Amb)|NoNewPrivs)' /proc/self/status > /data/status
        unshare -r true 2>/dev/null && exit 1
        exit 0"#,
    );
    succeeded(&stage.run(&run()));
    let status = std::fs::read_to_string(stage.data("status")).unwrap();
    let values: Vec<&str> = status.split_whitespace().skip(1).step_by(2).collect();
    let none = "0000000000000000";
    assert_eq!(values, [none, none, none, none, "1"], "{status}");
}

/// Two filters are in force, and what programs do every day works: processes, threads of busybox, pipes, sockets.
fn system_calls_that_no_action_needs_are_refused() {
    let stage = Stage::with(
        r#"grep -E '^Seccomp' /proc/self/status > /data/seccomp
        unshare -n true 2>/dev/null && exit 1
        unshare -m true 2>/dev/null && exit 2
        mount -t tmpfs none /tmp 2>/dev/null && exit 3
        chroot / true 2>/dev/null && exit 4
        hostname elsewhere 2>/dev/null && exit 5
        (echo a; echo b) | sort | wc -l | grep -q 2 || exit 6
        sleep 0.01 & wait $! || exit 7
        # The namespaces that it is in would let it have this one.
        unshare -U true 2>/dev/null && exit 8
        exit 0"#,
    );
    succeeded(&stage.run(&run()));
    let status = std::fs::read_to_string(stage.data("seccomp")).unwrap();
    let values: Vec<&str> = status.split_whitespace().skip(1).step_by(2).collect();
    assert_eq!(values.first(), Some(&"2"), "it is filtered: {status}");
    let filters: usize = values.get(1).map_or(2, |count| count.parse().unwrap());
    assert!(filters >= 2, "{status}");
}

/// Everybody on the machine can read the arguments of a process.
fn what_a_program_is_told_is_in_no_list_of_processes() {
    let stage = Stage::with(
        r#"[ "$(cat /run/bundle/variables/password)" = SHOWN-TO-NOBODY ] || exit 1
        touch /data/begun; while [ ! -e /data/go ]; do sleep 0.01; done"#,
    );
    let asked = stage::run_with(serde_json::json!({"password": "SHOWN-TO-NOBODY"}));
    stage.start(&asked);
    stage::until("the program", || stage.data("begun").exists());
    let shown = stage::processes_with("SHOWN-TO-NOBODY");
    std::fs::write(stage.data("go"), "").unwrap();
    succeeded(&stage.end(&asked.id));
    assert_eq!(shown, Vec::<String>::new());
}

fn a_program_runs_as_a_user_of_its_own() {
    let stage = Stage::with("[ \"$(id -u)\" != 0 ] && touch /data/file");
    succeeded(&stage.run(&run()));
    let owner =
        std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(stage.data("file")).unwrap());
    let able = stage.runner.check().unwrap();
    assert_eq!(owner, able.user);
    assert_eq!(able.user == heddle_bundles::sandbox::USER, is_root());
}

fn files_that_the_server_has_open_are_not_inherited() {
    use nix::fcntl::{FcntlArg, FdFlag, fcntl};

    // As whoever started the server may have left one open in it.
    let open = std::fs::File::open("/dev/null").unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&open);
    fcntl(number, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
    // The fourth one is the directory that is listed.
    let stage = Stage::with("echo $(ls /proc/self/fd) > /data/files");
    succeeded(&stage.run(&run()));
    let files = std::fs::read_to_string(stage.data("files")).unwrap();
    assert_eq!(files, "0 1 2 3\n");
}

fn an_image_whose_mount_point_is_a_link_is_refused() {
    let stage = Stage::with("exit 0");
    let outside = stage.directory.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, stage.root.join("data")).unwrap();
    let end = stage.run(&run());
    let Outcome::NotStarted { why } = end.outcome else {
        panic!("{end:?}")
    };
    assert!(why.contains("/data"), "{why}");
}
