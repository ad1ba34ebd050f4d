//! Tricks with what a program hands out.

use heddle_api::action::RunState;

use crate::stage::{Stage, failed_with, run, succeeded};
use crate::{Promise, promises};

pub(crate) const PROMISES: &[Promise] = promises![
    links_in_out_are_not_followed,
    pipes_directories_and_devices_in_out_hold_nobody_up,
    credentials_that_are_too_large_or_no_object_fail_the_run,
    out_cannot_be_filled_without_end,
    a_process_that_is_left_behind_ends_with_the_program,
];

fn links_in_out_are_not_followed() {
    let stage = Stage::with(
        r#"echo '{"secret": 1}' > /tmp/x
        ln -s /tmp/x /out/credentials.json
        ln -s /proc/1/environ /out/message"#,
    );
    let asked = run();
    let (code, message) = failed_with(&stage.run(&asked));
    assert_eq!((code, message.contains("link")), (0, true), "{message}");
    assert_eq!(stage.runner.credentials(&asked.id).unwrap(), None);

    let stage = Stage::with("ln -s /etc/passwd /out/message; ln -s /etc /out/progress; exit 1");
    let (_, message) = failed_with(&stage.run(&run()));
    assert_eq!(message, "");
}

fn pipes_directories_and_devices_in_out_hold_nobody_up() {
    let stage = Stage::with("mkfifo /out/message /out/progress; mkdir /out/dashboard-url; exit 1");
    let end = stage.run(&run());
    assert_eq!(failed_with(&end).0, 1);
    assert!(
        end.log_tail.contains("/out/message is not a plain file"),
        "{}",
        end.log_tail
    );
    assert_eq!(end.dashboard_url, None);
}

fn credentials_that_are_too_large_or_no_object_fail_the_run() {
    for script in [
        r#"(echo '{"a": "'; head -c 70000 /dev/zero | tr '\0' x; echo '"}') > /out/credentials.json"#,
        "echo '[1]' > /out/credentials.json",
        "echo '{' > /out/credentials.json",
        "head -c 100 /dev/urandom > /out/credentials.json",
    ] {
        let stage = Stage::with(script);
        let asked = run();
        let (code, message) = failed_with(&stage.run(&asked));
        assert_eq!(code, 0, "{script}");
        assert!(message.starts_with("/out/credentials.json"), "{message}");
        assert_eq!(stage.runner.credentials(&asked.id).unwrap(), None);
    }
}

fn out_cannot_be_filled_without_end() {
    let stage =
        Stage::with("head -c 8000000 /dev/zero > /out/message && exit 1; rm /out/message; exit 0");
    succeeded(&stage.run(&run()));
}

fn a_process_that_is_left_behind_ends_with_the_program() {
    let stage = Stage::with(
        r#"(while true; do echo still >> /data/beats; sleep 0.01; done) > /dev/null 2>&1 &
        while [ ! -s /data/beats ]; do sleep 0.01; done"#,
    );
    let asked = run();
    succeeded(&stage.run(&asked));
    assert!(matches!(
        stage.runner.look(&asked.id).unwrap(),
        RunState::Ended(_)
    ));
    let beats = std::fs::metadata(stage.data("beats")).unwrap().len();
    // Long enough for ten more.
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_eq!(std::fs::metadata(stage.data("beats")).unwrap().len(), beats);
}
