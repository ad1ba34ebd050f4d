//! Fuzzes every target of `fuzz`, two at a time.
//!
//! A target is a plain program once the compiler has put counters into it, so nothing but cargo and a C++ compiler is needed.
//! New inputs that reach further are kept in `target/fuzz/corpus`, and tried first the next time. What an input broke is printed with the
//! file that holds it; the same program, started with that file, breaks again.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

use anyhow::{Context as _, Result, bail, ensure};

use crate::check::{announce, progress};

/// What a person waits for each target when nothing else is said.
const SECONDS: u64 = 60;
/// As many as the machines of continuous integration have processors.
const AT_ONCE: usize = 2;
/// The end of what a broken target said.
const LINES_SHOWN: usize = 40;

/// Counters for the fuzzer, and every check that tests have. The same that `cargo fuzz --sanitizer none` asks for.
const RUSTFLAGS: &str = "--cfg fuzzing -Cdebug-assertions -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Fuzzes each target for so many seconds. The first that breaks makes this an error, after all have had their time.
pub(crate) fn run(root: &Path, seconds: Option<&str>) -> Result<()> {
    let seconds = match seconds {
        None => SECONDS,
        Some(text) => text
            .parse()
            .with_context(|| format!("{text:?} is no number of seconds"))?,
    };
    let targets = targets(root)?;
    announce(&format!(
        "==> {} targets, {seconds} s each, {AT_ONCE} at a time",
        targets.len()
    ));
    let built = Built::at(root)?;
    progress::reported("building them", announce, || built.build(root))?;
    let next = AtomicUsize::new(0);
    let one_after_another = || {
        let mut broken = Vec::new();
        while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
            match built.fuzz(root, target, seconds) {
                Ok(runs) => announce(&format!("    {target}: {runs} inputs")),
                Err(error) => {
                    announce(&format!("    {target}: {error:#}"));
                    broken.push(target.as_str());
                }
            }
        }
        broken
    };
    let broken: Vec<&str> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE)
            .map(|_| scope.spawn(one_after_another))
            .collect();
        let join = |worker: ScopedJoinHandle<'_, _>| worker.join().expect("workers do not panic");
        workers.into_iter().flat_map(join).collect()
    });
    ensure!(broken.is_empty(), "broken: {}", broken.join(", "));
    Ok(())
}

/// The names of all targets.
pub(crate) fn targets(root: &Path) -> Result<Vec<String>> {
    let folder = root.join("fuzz/fuzz_targets");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).context("cannot list the targets")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(".rs").map(str::to_owned));
    }
    names.sort();
    ensure!(!names.is_empty(), "there are no targets");
    Ok(names)
}

/// Where everything goes that is made.
struct Built {
    home: PathBuf,
    /// Of this machine; named so that programs which run while building are built without counters.
    triple: String,
}

impl Built {
    fn at(root: &Path) -> Result<Self> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        let target = target.unwrap_or_else(|| root.join("target"));
        let output = Command::new("rustc").arg("-vV").output();
        let output = output.context("cannot start rustc")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let triple = text.lines().find_map(|line| line.strip_prefix("host: "));
        Ok(Self {
            home: root.join(target).join("fuzz"),
            triple: triple
                .context("rustc does not say for which machine it is")?
                .to_owned(),
        })
    }

    fn build(&self, root: &Path) -> Result<()> {
        // The same versions as everybody's; what only the fuzzer needs is added to the copy.
        let lock = root.join("fuzz/Cargo.lock");
        std::fs::copy(root.join("Cargo.lock"), lock).context("cannot copy Cargo.lock")?;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .args([
                "build",
                "--manifest-path",
                "fuzz/Cargo.toml",
                "--bins",
                "--target",
                &self.triple,
            ])
            .env("CARGO_TARGET_DIR", &self.home)
            .env("RUSTFLAGS", RUSTFLAGS)
            .current_dir(root)
            .status()
            .context("cannot start cargo")?;
        ensure!(status.success(), "the targets cannot be built: {status}");
        Ok(())
    }

    /// How many inputs were tried, or what broke.
    #[expect(
        clippy::disallowed_methods,
        reason = "a chore writes into the working tree; no fault is injected here"
    )]
    fn fuzz(&self, root: &Path, target: &str, seconds: u64) -> Result<String> {
        let corpus = self.home.join("corpus").join(target);
        let artifacts = self.home.join("artifacts").join(target);
        for folder in [&corpus, &artifacts] {
            std::fs::create_dir_all(folder).context("cannot make a folder")?;
        }
        let output = Command::new(self.home.join(&self.triple).join("debug").join(target))
            .args([&corpus, &root.join("fuzz/seeds").join(target)])
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            .arg(format!("-max_total_time={seconds}"))
            .args(["-timeout=30", "-rss_limit_mb=1024", "-print_final_stats=1"])
            .current_dir(root)
            .output()
            .with_context(|| format!("cannot start {target}"))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            let lines: Vec<&str> = said.lines().collect();
            let end = &lines[lines.len().saturating_sub(LINES_SHOWN)..];
            bail!("{}\n{}", output.status, end.join("\n"));
        }
        let runs = said
            .lines()
            .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
        Ok(runs
            .context("it does not say how much it tried")?
            .trim()
            .to_owned())
    }
}

#[cfg(test)]
mod tests;
