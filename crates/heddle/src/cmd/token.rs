//! `heddle token`: tokens for people, with a role each.
//!
//! A token is drawn here and told once; what is stored is its digest.

use std::time::Duration;

use heddle_api::access::token::{ACCESS_TOKEN_TYPE, AccessToken, scope_of};
use heddle_api::access::{Access, Role, Scope};
use heddle_api::well_known::SYSTEM_NAMESPACE;
use heddle_apiserver::digest;
use http::Request;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use serde_json::json;

use crate::client::target::check_name;
use crate::client::{ClientArgs, Remote, objects};
use crate::failure::Failure;
use crate::terminal::Terminal;
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle token create ada --role viewer                     reads everything but Secrets and the data of events
  heddle token create ops --role operator -n team-a --payloads --ttl 90d
  heddle token list                                         who has one, and until when
  heddle token revoke ada                                   ends it, and everything that was opened with it";

/// 256 bits: nobody guesses that.
const TOKEN_BYTES: usize = 32;
const SECRETS: &str = "/api/v1/namespaces/heddle-system/secrets";

/// Give people tokens with a role
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES)]
pub(super) enum Command {
    /// Make a token and print it, once
    Create(CreateArgs),
    /// List tokens
    #[command(visible_alias = "ls")]
    List(TokenListArgs),
    /// Take a token back
    Revoke(RevokeArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct CreateArgs {
    /// Whose it is; what they do is recorded under this name
    name: String,

    /// What they may do
    #[arg(long, value_name = "ROLE", value_parser = ["viewer", "operator", "administrator"])]
    role: String,

    /// Where; may be given several times [default: everywhere]
    #[arg(short, long = "namespace", value_name = "NAME")]
    namespaces: Vec<String>,

    /// Let them read the data of events, too
    #[arg(long)]
    payloads: bool,

    /// How long it is good, such as 90d, 12h or 30m [default: for ever]
    #[arg(long, value_name = "TIME", value_parser = time_to_live)]
    ttl: Option<Duration>,

    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct TokenListArgs {
    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct RevokeArgs {
    /// Whose
    name: String,

    #[command(flatten)]
    client: ClientArgs,
}

impl Command {
    pub(super) async fn run(self, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
        match self {
            Self::Create(args) => create(args, world, terminal).await,
            Self::List(args) => list(args, terminal).await,
            Self::Revoke(args) => revoke(args, terminal).await,
        }
    }
}

async fn create(args: CreateArgs, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    check_name(&args.name)?;
    for namespace in &args.namespaces {
        check_name(namespace)?;
    }
    let role = Role::ALL.into_iter().find(|role| role.name() == args.role);
    let role = role.ok_or_else(|| Failure::Usage(format!("{} is no role", args.role)))?;
    let token = world.chance.token(TOKEN_BYTES);
    let expires = args.ttl.map(|ttl| world.clock.now().saturating_add(ttl));
    let wanted = AccessToken {
        digest: digest(&token),
        access: Access {
            user: args.name.clone(),
            role,
            scope: scope_of(&args.namespaces),
            payloads: args.payloads,
        },
        expires: expires.transpose()?,
    };
    wanted.check().map_err(Failure::Usage)?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": ACCESS_TOKEN_TYPE,
        "metadata": {"name": args.name, "namespace": SYSTEM_NAMESPACE},
        "stringData": wanted.data(),
    });
    let remote = Remote::connect(&args.client).await?;
    let request = Request::post(SECRETS)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(serde_json::to_vec(&secret)?)?;
    let object = format!("token {}", args.name);
    remote.send(request).await?.ok(&object)?;
    terminal.note(&format!(
        "{} is {} {}; this is the token, which is told only now:",
        args.name,
        role.name(),
        place(&wanted.access.scope)
    ));
    terminal.print(&format!("{token}\n"))?;
    Ok(())
}

async fn list(args: TokenListArgs, terminal: &mut Terminal) -> anyhow::Result<()> {
    let remote = Remote::connect(&args.client).await?;
    let secrets: Vec<Secret> = objects::all(&remote, Some(SYSTEM_NAMESPACE)).await?;
    let ours = |secret: &&Secret| secret.type_.as_deref() == Some(ACCESS_TOKEN_TYPE);
    let mut text = String::new();
    for secret in secrets.iter().filter(ours) {
        let name = secret.name_any();
        let line = match AccessToken::read(&name, secret.data.as_ref()) {
            Ok(token) => {
                let payloads = if token.access.payloads {
                    ", reads data"
                } else {
                    ""
                };
                let until = token.expires.map(|at| format!(", until {at}"));
                format!(
                    "{name}: {} {}{payloads}{}",
                    token.access.role.name(),
                    place(&token.access.scope),
                    until.unwrap_or_default()
                )
            }
            Err(reason) => format!("{name}: lets nobody in: {reason}"),
        };
        text.push_str(&line);
        text.push('\n');
    }
    if text.is_empty() {
        terminal.note("nobody has a token; `heddle token create NAME --role viewer` makes one");
    }
    terminal.print(&text)?;
    Ok(())
}

async fn revoke(args: RevokeArgs, terminal: &mut Terminal) -> anyhow::Result<()> {
    check_name(&args.name)?;
    let remote = Remote::connect(&args.client).await?;
    let found: Option<Secret> = objects::one(&remote, Some(SYSTEM_NAMESPACE), &args.name).await?;
    let ours = |secret: &Secret| secret.type_.as_deref() == Some(ACCESS_TOKEN_TYPE);
    if !found.as_ref().is_some_and(ours) {
        let name = &args.name;
        let text = format!("there is no token {name}; `heddle token list` lists them");
        return Err(Failure::NotFound(text).into());
    }
    let request = Request::delete(format!("{SECRETS}/{}", args.name)).body(Vec::new())?;
    let object = format!("token {}", args.name);
    remote.send(request).await?.ok(&object)?;
    terminal.print(&format!("token {} revoked\n", args.name))?;
    Ok(())
}

fn place(scope: &Scope) -> String {
    match scope {
        Scope::All => "everywhere".to_owned(),
        Scope::Namespaces(names) => {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            format!("in {}", names.join(", "))
        }
    }
}

/// `90d`, `12h`, `30m`.
pub(super) fn time_to_live(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text} is no time: write 90d, 12h or 30m");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        'd' => 86_400,
        'h' => 3_600,
        'm' => 60,
        _ => return Err(wrong()),
    };
    let count: u32 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    if count == 0 {
        return Err(wrong());
    }
    Ok(Duration::from_secs(u64::from(count) * seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let seconds = |text: &str| time_to_live(text).ok().map(|time| time.as_secs());
        assert_eq!(seconds("90d"), Some(90 * 86_400));
        assert_eq!(seconds("12h"), Some(12 * 3_600));
        assert_eq!(seconds("30m"), Some(1_800));
        for wrong in ["", "d", "0d", "9", "1w", "-1d", "1.5h", "9é"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
