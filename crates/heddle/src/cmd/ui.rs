//! `heddle ui`: opens the page, logged in.
//!
//! The link has a code that logs in once and for a minute, behind the `#`, which browsers send to nobody.

use anyhow::Context as _;
use http::Request;
use serde::Deserialize;

use crate::client::ledger::refused;
use crate::client::{ClientArgs, Remote};
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
    if !args.no_open && !OPENERS.iter().any(|opener| open(opener, &link)) {
        terminal.note("no browser could be opened: open the link yourself, within a minute");
    }
    Ok(())
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

/// The server's own certificate is none that a browser believes; on this machine none is needed.
fn for_browsers(url: &str) -> String {
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

/// Whether a program took the link. It is not waited for.
fn open(program: &str, link: &str) -> bool {
    let mut command = std::process::Command::new(program);
    let quiet = std::process::Stdio::null;
    let started = command
        .arg(link)
        .stdin(quiet())
        .stdout(quiet())
        .stderr(quiet());
    started.spawn().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

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
