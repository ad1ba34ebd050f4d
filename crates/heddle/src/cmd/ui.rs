//! `heddle ui`: opens the page, logged in.
//!
//! The link has a code that logs in once and for a minute, behind the `#`, which browsers send to nobody. Everybody on a machine
//! can read the arguments of its programs, so a browser is given the path of a file that only its owner reads, and that leads on.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use http::Request;
use serde::Deserialize;

use crate::client::ledger::refused;
use crate::client::{ClientArgs, Remote};
use crate::files;
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  heddle ui                        open the page in the browser, logged in as the kubeconfig says
  heddle ui --no-open              print the link, which is good once and for a minute";

/// What opens a browser, on one system or another.
const OPENERS: [&str; 2] = ["xdg-open", "open"];

/// Open the page in the browser, logged in
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Print the link and open nothing
    #[arg(long)]
    no_open: bool,

    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Deserialize)]
struct LoginCode {
    code: String,
}

pub(super) async fn run(args: Args, terminal: &mut Terminal) -> anyhow::Result<()> {
    let remote = Remote::connect(&args.client).await?;
    let link = link(&remote).await?;
    terminal.print(&format!("{link}\n"))?;
    if !args.no_open {
        let file = lead_on(&args.client.data_dir, &link)?;
        if !OPENERS.iter().any(|opener| open(opener, &file)) {
            terminal.note("no browser could be opened: open the link yourself, within a minute");
        }
    }
    Ok(())
}

/// A file for its owner alone, which leads a browser to the link. It lies with the server's files if they are here.
fn lead_on(data_dir: &Path, link: &str) -> anyhow::Result<PathBuf> {
    let file = match data_dir.is_dir() {
        true => data_dir.join("ui-login.html"),
        false => std::env::temp_dir().join(format!("heddle-login-{}.html", std::process::id())),
    };
    let file = std::path::absolute(file)?;
    files::write_private(&file, page(link).as_bytes())?;
    Ok(file)
}

fn page(link: &str) -> String {
    let link = link.replace('&', "&amp;").replace('"', "&quot;");
    format!(
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\"><meta http-equiv=\"refresh\" content=\"0; url={link}\"><title>heddle</title>\n"
    )
}

/// A link that logs in whoever opens it first.
pub(super) async fn link(remote: &Remote) -> anyhow::Result<String> {
    let request = Request::post("/heddle/v1/session/codes").body(Vec::new())?;
    let answer = remote.send(request).await?;
    if !answer.code.is_success() {
        return Err(refused("the page", &answer).into());
    }
    let answer: LoginCode = serde_json::from_slice(answer.body()).context("no code came back")?;
    Ok(format!(
        "{}/ui/#code={}",
        for_browsers(remote.url()),
        answer.code
    ))
}

/// Where a page is, for whoever may see it. `rest` is what follows `/ui/`.
pub(super) fn page_address(remote: &Remote, rest: &str) -> String {
    format!("{}/ui/{rest}", for_browsers(remote.url()))
}

/// The server's own certificate is none that a browser believes; on this machine none is needed.
pub(super) fn for_browsers(url: &str) -> String {
    let plain = url.replacen("https://", "http://", 1);
    let parsed: Option<http::Uri> = plain.parse().ok();
    let host = parsed
        .as_ref()
        .and_then(http::Uri::host)
        .unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let is_here = match address.parse::<std::net::IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost",
    };
    if is_here { plain } else { url.to_owned() }
}

/// Whether a program took the file. It is not waited for.
fn open(program: &str, file: &Path) -> bool {
    let mut command = std::process::Command::new(program);
    let quiet = std::process::Stdio::null;
    let started = command
        .arg(file)
        .stdin(quiet())
        .stdout(quiet())
        .stderr(quiet());
    started.spawn().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_in_a_file_for_its_owner_and_in_no_argument() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let file = lead_on(folder.path(), "http://127.0.0.1:4333/ui/#code=x\"&y").unwrap();
        let text = files::read_text(&file).unwrap();
        assert!(
            text.contains("url=http://127.0.0.1:4333/ui/#code=x&quot;&amp;y\""),
            "{text}"
        );
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        lead_on(folder.path(), "http://127.0.0.1/").unwrap();
        assert!(!files::read_text(&file).unwrap().contains("code"));
    }

    #[test]
    fn on_this_machine_no_certificate_is_asked_for() {
        for (url, shown) in [
            ("https://127.0.0.1:4333", "http://127.0.0.1:4333"),
            ("https://[::1]:4333", "http://[::1]:4333"),
            ("https://localhost:4333", "http://localhost:4333"),
            ("https://10.0.0.7:4333", "https://10.0.0.7:4333"),
            ("https://heddle.example.org", "https://heddle.example.org"),
        ] {
            assert_eq!(for_browsers(url), shown);
        }
    }
}
