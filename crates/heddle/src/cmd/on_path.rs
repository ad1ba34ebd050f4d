//! What a shell needs before it knows the word `heddle`: nothing, or the folder of this program on its `PATH`.
//!
//! Whoever starts with `cargo run` has no such command yet, and what `serve` and `demo` print is meant to be copied.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The beginning of an `export` that makes `heddle` this program, with a space behind it; nothing where it is that already.
pub(super) fn assignment() -> String {
    let program = std::env::current_exe().unwrap_or_default();
    let folder = absent_folder(&program, &std::env::var_os("PATH").unwrap_or_default());
    folder.map_or_else(String::new, |folder| {
        format!("PATH={}:$PATH ", folder.display())
    })
}

/// The folder of `program`, unless the first `heddle` on `path` is it.
fn absent_folder<'a>(program: &'a Path, path: &OsStr) -> Option<&'a Path> {
    let mut candidates = std::env::split_paths(path).map(|folder| folder.join("heddle"));
    let found = candidates.find(|candidate| candidate.is_file());
    let resolve = |path: &Path| path.canonicalize().ok();
    let same = |found: PathBuf| resolve(&found).is_some() && resolve(&found) == resolve(program);
    if found.is_some_and(same) {
        return None;
    }
    program.parent()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_told_only_where_heddle_would_be_another_or_none() {
        let folders = tempfile::tempdir().unwrap();
        let folder = |name: &str, has: bool| {
            let folder = folders.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            if has {
                std::os::unix::fs::symlink(std::env::current_exe().unwrap(), folder.join("heddle"))
                    .unwrap();
            }
            folder
        };
        let (empty, linked) = (folder("empty", false), folder("linked", true));
        let other = folder("other", false);
        std::os::unix::fs::symlink("/bin/sh", other.join("heddle")).unwrap();
        let program = std::env::current_exe().unwrap();
        let absent = |path: &[&PathBuf]| {
            absent_folder(&program, &std::env::join_paths(path).unwrap()).is_some()
        };
        assert!(absent(&[&empty]));
        assert!(absent(&[&empty, &other, &linked]), "the first one counts");
        assert!(!absent(&[&empty, &linked, &other]));
        assert_eq!(
            absent_folder(&program, OsStr::new("")),
            program.parent(),
            "no PATH at all"
        );
    }
}
