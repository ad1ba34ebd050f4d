use heddle_api::action::Outcome;

use super::*;

fn run() -> (tempfile::TempDir, RunFiles) {
    let directory = tempfile::tempdir().unwrap();
    let files = RunFiles {
        directory: directory.path().to_owned(),
    };
    (directory, files)
}

#[test]
fn the_files_of_a_run_tell_how_it_stands() {
    let (_directory, files) = run();
    assert_eq!(files.standing().unwrap(), RunFilesState::Fresh);
    let lock = Lock::take(&files.lock()).unwrap().unwrap();
    assert_eq!(files.standing().unwrap(), RunFilesState::Running);
    files.write_started().unwrap();
    assert_eq!(files.standing().unwrap(), RunFilesState::Running);
    drop(lock);
    assert_eq!(files.standing().unwrap(), RunFilesState::Abandoned);
    let end = RunEnd {
        outcome: Outcome::Succeeded,
        dashboard_url: None,
        log_tail: String::new(),
    };
    files.write_ended(&end, None).unwrap();
    assert_eq!(files.standing().unwrap(), RunFilesState::Ended);
    assert_eq!(files.read_ended().unwrap(), end);
}

#[test]
fn credentials_are_in_the_end_of_a_run_or_where_earlier_versions_put_them() {
    let (_directory, files) = run();
    let end = RunEnd {
        outcome: Outcome::Succeeded,
        dashboard_url: None,
        log_tail: String::new(),
    };
    files.write_ended(&end, None).unwrap();
    assert_eq!(files.read_credentials().unwrap(), None);
    write_whole(&files.older_credentials(), br#"{"user": "old"}"#).unwrap();
    let user = || files.read_credentials().unwrap().unwrap()["user"].clone();
    assert_eq!(user(), "old");
    let credentials = Map::from_iter([("user".to_owned(), Value::from("new"))]);
    files.write_ended(&end, Some(credentials)).unwrap();
    assert_eq!(user(), "new");
    assert_eq!(files.read_ended().unwrap(), end);
}

#[test]
fn a_lock_is_held_by_one_and_looking_does_not_take_it() {
    let (_directory, files) = run();
    assert!(!is_locked(&files.lock()).unwrap());
    let lock = Lock::take(&files.lock()).unwrap().unwrap();
    lock.note("7\n").unwrap();
    assert!(is_locked(&files.lock()).unwrap());
    assert!(Lock::take(&files.lock()).unwrap().is_none());
    drop(lock);
    assert!(!is_locked(&files.lock()).unwrap());
    assert!(Lock::take(&files.lock()).unwrap().is_some());
}

#[test]
fn what_is_too_large_or_a_link_is_not_read() {
    let (directory, files) = run();
    write_whole(&files.log(), &[b'x'; 11]).unwrap();
    assert!(read_bounded(&files.log(), 10).is_err());
    assert_eq!(read_bounded(&files.log(), 11).unwrap().len(), 11);
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(files.log(), &link).unwrap();
    assert!(read_bounded(&link, 11).is_err());
}
