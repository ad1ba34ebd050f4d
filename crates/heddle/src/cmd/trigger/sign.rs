//! `heddle trigger sign`: signatures on what a trigger sends. The key goes to standard output, alone and once.

use heddle_api::signing::{
    MadeKey, OVERLAP_WANTED, RotateKeyRequest, SignRequest, SigningScheme, overlap,
};
use http::Request;
use serde::Serialize;
use serde_json::Value;

use super::{CommandContext, TriggerTarget};
use crate::client::Remote;
use crate::client::target::Qualified;
use crate::output::ReportFormat;

const EXAMPLES: &str = "\
Examples:
  heddle trigger sign team-a/orders                             a secret that its subscriber gets, too
  heddle trigger sign team-a/orders --ed25519                   a key pair: its subscriber gets what verifies
  heddle trigger sign team-a/orders --rotate --overlap 7d       another key; both sign for a week
  heddle trigger sign team-a/orders --off

Signatures are those of the Standard Webhooks specification, for which there are libraries in many languages. The key is kept
in the Secret NAME-signing beside the trigger. Without it nothing is sent: events wait, and the trigger says so. In binary form
attributes are headers, which are not signed; with spec.delivery.format: json they are.";

/// `heddle trigger sign`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cmd) struct SignArgs {
    #[command(flatten)]
    target: TriggerTarget,

    /// Sign with a key pair (Ed25519, v1a) rather than with a shared secret (HMAC-SHA256, v1)
    #[arg(long)]
    ed25519: bool,

    /// Make another key; the one before signs, too, while the subscriber changes over
    #[arg(long)]
    rotate: bool,

    /// How long that is: none, or a time up to 30d [default: 24h]
    #[arg(long, value_name = "TIME", requires = "rotate", value_parser = checked_overlap)]
    overlap: Option<String>,

    /// Sign no more, and remove the key
    #[arg(long, conflicts_with_all = ["rotate", "ed25519"])]
    off: bool,
}

fn checked_overlap(text: &str) -> Result<String, String> {
    match overlap(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err(format!("wanted is {OVERLAP_WANTED}")),
    }
}

impl SignArgs {
    pub(super) fn target(&self) -> &TriggerTarget {
        &self.target
    }

    pub(super) async fn run(self, context: CommandContext<'_>) -> anyhow::Result<()> {
        let remote = context.remote;
        if self.off {
            let done = self.ask(remote, "unsign", &serde_json::json!({})).await?;
            let text = format!("what trigger {} sends is not signed\n", self.target.name);
            let shown = self.target.output.render(&done, |_| text);
            return Ok(context.terminal.print(&shown)?);
        }
        let scheme = self.ed25519.then_some(SigningScheme::Ed25519);
        let made = match self.rotate {
            true => {
                let request = RotateKeyRequest {
                    scheme,
                    overlap: self.overlap.clone(),
                };
                self.ask(remote, "rotate-key", &request).await?
            }
            false => {
                let scheme = scheme.unwrap_or_default();
                self.ask(remote, "sign", &SignRequest { scheme }).await?
            }
        };
        let made: MadeKey = serde_json::from_value(made)?;
        if matches!(self.target.output, ReportFormat::Table) {
            context.terminal.note(&note(&made));
        }
        let shown = self
            .target
            .output
            .render(&made, |made| format!("{}\n", made.key));
        Ok(context.terminal.print(&shown)?)
    }

    async fn ask(
        &self,
        remote: &Remote,
        what: &str,
        body: &impl Serialize,
    ) -> anyhow::Result<Value> {
        let Qualified { namespace, name } = &self.target.name;
        let request = Request::post(format!("/heddle/v1/triggers/{namespace}/{name}/{what}"))
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(serde_json::to_vec(body)?)?;
        let object = format!("trigger {namespace}/{name}");
        remote.send(request).await?.ok(&object)
    }
}

/// What is said beside a key.
fn note(made: &MadeKey) -> String {
    let given = match made.scheme {
        SigningScheme::HmacSha256 => {
            "Give its subscriber this key, which must be kept secret and is told only now"
        }
        SigningScheme::Ed25519 => {
            "Its subscriber verifies with this public key; what signs stays in the Secret"
        }
    };
    let before = made.previous_until.map_or_else(String::new, |until| {
        format!(" The key before signs, too, until {until}.")
    });
    format!(
        "what trigger {} sends is signed with {}, by the key in Secret {}.{before} {given}:",
        made.trigger, made.scheme, made.secret
    )
}
