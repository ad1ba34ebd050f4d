use super::*;

const HYBRID_MOUNTS: &str = "\
30 20 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
32 30 0:28 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
33 30 0:29 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";

#[test]
fn where_both_versions_are_mounted_the_controllers_of_the_first_are_taken() {
    let memberships = "4:memory:/jobs/a\n8:pids:/\n0::/\n";
    assert_eq!(
        Place::from(memberships, HYBRID_MOUNTS),
        Some(Place::V1 {
            memory: "/sys/fs/cgroup/memory/jobs/a".into(),
            pids: "/sys/fs/cgroup/pids".into(),
        })
    );
}

#[test]
fn with_version_two_the_own_group_is_tried_and_then_the_one_above() {
    let mounts = "31 30 0:27 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate";
    assert_eq!(
        Place::from("0::/system.slice/heddle.service/server\n", mounts),
        Some(Place::V2(vec![
            "/sys/fs/cgroup/system.slice/heddle.service/server".into(),
            "/sys/fs/cgroup/system.slice/heddle.service".into(),
        ]))
    );
    assert_eq!(
        Place::from("0::/\n", mounts),
        Some(Place::V2(vec!["/sys/fs/cgroup".into()]))
    );
}

#[test]
fn a_container_that_sees_a_part_of_the_hierarchy_finds_itself_in_it() {
    let mounts = "31 30 0:27 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory
32 30 0:28 /docker/abc /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids";
    assert_eq!(
        Place::from("4:memory:/docker/abc\n8:pids:/docker/abc/x\n", mounts),
        Some(Place::V1 {
            memory: "/sys/fs/cgroup/memory".into(),
            pids: "/sys/fs/cgroup/pids/x".into(),
        })
    );
    assert_eq!(Place::from("", ""), None);
}

#[test]
fn a_group_without_the_controllers_is_taken_back() {
    let directory = tempfile::tempdir().unwrap();
    let limits = Limits {
        memory_bytes: 1,
        processes: 1,
        seconds: 1,
        network: false,
        disk_bytes: 1 << 30,
        disk_files: 100_000,
    };
    let place = Place::V2(vec![directory.path().to_owned()]);
    assert!(place.make("run", limits).is_none());
    assert!(!directory.path().join("run").exists());
}
