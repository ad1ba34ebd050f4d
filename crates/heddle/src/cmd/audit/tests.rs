//! What a line of the log says to people.

use heddle_api::audit::{AuditDoor, AuditEntry, AuditOutcome};
use jiff::Timestamp;

use super::*;

fn line(change: impl FnOnce(&mut AuditEntry)) -> AuditLine {
    let mut entry = AuditEntry::new(AuditDoor::Resources, "create", "POST /api".to_owned());
    entry.outcome = AuditOutcome::Done;
    entry.status = Some(201);
    change(&mut entry);
    AuditLine {
        number: 1,
        at: Timestamp::UNIX_EPOCH,
        entry,
    }
}

#[test]
fn a_row_says_who_from_where_what_and_how_it_ended() {
    let told = row(&line(|entry| {
        entry.user = Some("ada".to_owned());
        entry.impersonator = Some("proxy".to_owned());
        entry.address = Some("127.0.0.1".to_owned());
        entry.kind = Some("trigger".to_owned());
        entry.namespace = Some("team-a".to_owned());
        entry.name = Some("orders".to_owned());
    }));
    assert_eq!(
        told[1..],
        [
            "ada by proxy",
            "127.0.0.1",
            "create",
            "trigger/team-a/orders",
            "done 201"
        ]
    );
    let told = row(&line(|entry| {
        entry.outcome = AuditOutcome::Refused;
        entry.status = Some(401);
        entry.reason = Some("Unauthorized".to_owned());
        entry.count = 990;
    }));
    assert_eq!(
        told[1..],
        [
            "-",
            "-",
            "create",
            "POST /api",
            "990 × refused 401 Unauthorized"
        ]
    );
    let told = row(&line(|entry| {
        entry.outcome = AuditOutcome::Interrupted;
        entry.status = None;
        entry.user = Some("cf".to_owned());
        entry.on_behalf_of = Some("cloudfoundry jo".to_owned());
    }));
    assert_eq!(told[1], "cf for cloudfoundry jo");
    assert_eq!(told[5], "interrupted");
}

#[test]
fn what_strangers_wrote_does_nothing_to_a_terminal() {
    let told = row(&line(|entry| {
        entry.user = Some("\u{1b}[2J".to_owned());
        entry.name = Some("a\nb".to_owned());
        entry.reason = Some("\u{7}".to_owned());
    }));
    assert!(
        !told.concat().contains(['\u{1b}', '\n', '\u{7}']),
        "{told:?}"
    );
}

#[test]
fn an_empty_log_says_so() {
    assert_eq!(table(&[], false), "no such change is kept\n");
}
