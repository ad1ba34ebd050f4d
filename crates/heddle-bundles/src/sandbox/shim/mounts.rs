//! What the program sees of the world: the image, read-only, and a few places of its own.
//!
//! The image comes from a stranger. A mount point in it that is a link could lead a mount anywhere on this machine, so each
//! part of the way must be a directory. Nothing can change it while it is looked at: images are written once, by the server,
//! and every program sees them read-only.

#![expect(
    clippy::disallowed_methods,
    reason = "mount points and devices are made where no fault is injected"
)]

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::{chdir, pivot_root};
use serde_json::{Map, Value};

use super::super::order::Order;

/// What a program may put into `/tmp`, and what it may hand out.
const TMP_OPTIONS: &str = "mode=1777,size=64m,nr_inodes=16384";
const OUT_OPTIONS: &str = "mode=0777,size=1m,nr_inodes=256";
const DEV_OPTIONS: &str = "mode=0755,size=64k,nr_inodes=64";
const RUN_OPTIONS: &str = "mode=0755,size=8m,nr_inodes=4096";

const POINTS: [&str; 6] = ["proc", "dev", "tmp", "data", "out", "run/bundle"];
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("shm", "/tmp"),
];

type Done = Result<(), String>;

/// Puts everything in place below the image's root, in a mount namespace that was just made.
pub(super) fn prepare(order: &Order) -> Done {
    let root = &order.root;
    keep_to_ourselves()?;
    for point in POINTS {
        make_point(root, point)?;
    }
    bind(root, root, MsFlags::MS_RDONLY)?;
    file_system("proc", &root.join("proc"), MsFlags::MS_NOEXEC, "")?;
    devices(&root.join("dev"))?;
    file_system("tmpfs", &root.join("tmp"), MsFlags::empty(), TMP_OPTIONS)?;
    file_system("tmpfs", &root.join("out"), MsFlags::MS_NOEXEC, OUT_OPTIONS)?;
    bind(&order.data, &root.join("data"), MsFlags::empty())?;
    variables(&root.join("run/bundle"), &order.run.variables)
}

/// Nothing that is mounted from here on is seen outside, and nothing outside comes in.
pub(super) fn keep_to_ourselves() -> Done {
    let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, flags, None::<&str>)
        .map_err(|error| format!("cannot keep mounts to the sandbox: {error}"))
}

/// Makes `root` the root of everybody in this mount namespace. What was the root before is out of reach from then on.
pub(super) fn make_root(root: &Path) -> Done {
    let moved = chdir(root)
        .and_then(|()| pivot_root(".", "."))
        .and_then(|()| umount2(".", MntFlags::MNT_DETACH))
        .and_then(|()| chdir("/"));
    moved.map_err(|error| format!("cannot make {} the root: {error}", root.display()))
}

pub(super) fn file_system(kind: &str, at: &Path, more: MsFlags, options: &str) -> Done {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | more;
    mount(Some(kind), at, Some(kind), flags, Some(options))
        .map_err(|error| format!("cannot mount {kind} at {}: {error}", at.display()))
}

/// Flags of a bind mount are set by mounting it again.
fn bind(source: &Path, target: &Path, more: MsFlags) -> Done {
    let none = None::<&str>;
    let again =
        MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | more;
    mount(Some(source), target, none, MsFlags::MS_BIND, none)
        .and_then(|()| mount(none, target, none, again, none))
        .map_err(|error| {
            format!(
                "cannot show {} at {}: {error}",
                source.display(),
                target.display()
            )
        })
}

/// Devices are opened where they are mounted, so these mounts may hold some.
fn devices(at: &Path) -> Done {
    file_system("tmpfs", at, MsFlags::MS_NOEXEC, DEV_OPTIONS)?;
    for name in DEVICES {
        let (source, target) = (Path::new("/dev").join(name), at.join(name));
        fs::write(&target, "").map_err(|e| trouble("make", name, &e))?;
        mount(
            Some(&source),
            &target,
            None::<&str>,
            MsFlags::MS_BIND,
            None::<&str>,
        )
        .map_err(|error| format!("cannot show device {name}: {error}"))?;
    }
    for (name, target) in DEVICE_LINKS {
        symlink(target, at.join(name)).map_err(|e| trouble("make", name, &e))?;
    }
    make_read_only(at)
}

/// All variables in one file, and each in one of its own: programs without a parser for JSON read those.
fn variables(at: &Path, variables: &Map<String, Value>) -> Done {
    file_system("tmpfs", at, MsFlags::MS_NOEXEC, RUN_OPTIONS)?;
    let write = |name: PathBuf, text: String| {
        fs::write(at.join(&name), text)
            .map_err(|e| trouble("write", &name.display().to_string(), &e))
    };
    write(
        "variables.json".into(),
        Value::Object(variables.clone()).to_string(),
    )?;
    fs::create_dir(at.join("variables")).map_err(|e| trouble("make", "variables", &e))?;
    for (name, value) in variables {
        if is_plain_name(name) {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                other => other.to_string(),
            };
            write(Path::new("variables").join(name), text)?;
        }
    }
    make_read_only(at)
}

/// Others are in the file that holds all.
fn is_plain_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    (1..=128).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(plain)
}

fn make_read_only(at: &Path) -> Done {
    let flags = MsFlags::MS_BIND
        | MsFlags::MS_REMOUNT
        | MsFlags::MS_RDONLY
        | MsFlags::MS_NOSUID
        | MsFlags::MS_NODEV
        | MsFlags::MS_NOEXEC;
    mount(None::<&str>, at, None::<&str>, flags, None::<&str>)
        .map_err(|error| format!("cannot make {} read-only: {error}", at.display()))
}

fn make_point(root: &Path, point: &str) -> Done {
    let mut at = root.to_owned();
    for part in Path::new(point) {
        at.push(part);
        match fs::symlink_metadata(&at) {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => return Err(format!("the image has a /{point} that is not a directory")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Another run of the same image may be quicker.
                match fs::create_dir(&at) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                        return Err(trouble("make", point, &error));
                    }
                    _ => {}
                }
            }
            Err(error) => return Err(trouble("look at", point, &error)),
        }
    }
    Ok(())
}

fn trouble(verb: &str, what: &str, error: &io::Error) -> String {
    format!("cannot {verb} {what} in the sandbox: {error}")
}
