//! `heddle catalog`: what can be provisioned here, and why something can or cannot (`explain.rs`).

mod explain;
mod parameters;

use serde_json::Value;

use super::NamespaceArgs;
use super::bundle::listing;
use super::osb::check_namespace;
use crate::client::osb::Osb;
use crate::client::{ClientArgs, Remote};
use crate::cmd::CommandContext;
use crate::output::{ReportFormat, Table, harmless};
use crate::terminal::Terminal;
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle catalog -n team-a        what team-a's ApplicationMappings enable
  heddle catalog -A               everything, whoever may use it
  heddle catalog -n team-a -o json | jq '.[].name'
  heddle catalog explain hello-apb
                                  why a bundle's offering is as it is

A parameter that must be given comes first; `heddle catalog explain NAME` says what each one takes. Provision with
`heddle provision NAME -n NAMESPACE -p PARAMETER=VALUE --wait`.";

/// So many bundles that are left out are named.
const LEFT_OUT_MAX: usize = 5;

/// Show what can be provisioned, or explain one offering
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    namespace: NamespaceArgs,

    /// How to show it
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Explain why a bundle is offered or not, and what would change it
    Explain(explain::Args),
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    if let Some(Command::Explain(args)) = &args.command {
        let remote = Remote::connect(&args.client).await?;
        return explain::explain(args, CommandContext::new(&remote, world, terminal)).await;
    }
    let remote = Remote::connect(&args.client).await?;
    show(&args, &remote, terminal).await
}

async fn show(args: &Args, remote: &Remote, terminal: &mut Terminal) -> anyhow::Result<()> {
    let namespace = args.namespace.chosen(&remote.namespace)?;
    let osb = match namespace {
        Some(namespace) => Osb::of_namespace(remote, namespace),
        None => Osb::of_server(remote),
    };
    let services = osb.catalog().await?;
    if args.output == ReportFormat::Table {
        for line in left_out(remote).await? {
            terminal.note(&line);
        }
    }
    if let Some(namespace) = namespace.filter(|_| services.is_empty()) {
        check_namespace(namespace, remote).await?;
    }
    if services.is_empty() && args.output == ReportFormat::Table {
        terminal.note(&nothing(namespace));
        return Ok(());
    }
    let colour = terminal.colour_out;
    let text = args
        .output
        .render(&services, |services| table(services, colour));
    Ok(terminal.print(&text)?)
}

/// Bundles that should be here and are not, each with the reason; as many as somebody reads.
async fn left_out(remote: &Remote) -> anyhow::Result<Vec<String>> {
    let standings = listing::standings(remote).await?;
    let why = standings.iter().filter_map(|(bundle, standing)| {
        let (name, why) = (standing.name.as_deref(), standing.left_out.as_deref()?);
        Some(format!(
            "{} is left out: {}",
            harmless(name.unwrap_or(bundle)),
            harmless(why)
        ))
    });
    let mut lines: Vec<String> = why.collect();
    if let Some(more) = lines
        .len()
        .checked_sub(LEFT_OUT_MAX)
        .filter(|more| *more > 0)
    {
        lines.truncate(LEFT_OUT_MAX);
        lines.push(format!(
            "and {more} more; `heddle bundle ls` shows all bundles"
        ));
    }
    Ok(lines)
}

fn nothing(namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => format!(
            "nothing is offered in {namespace}: an ApplicationMapping there enables an Application's services"
        ),
        None => "nothing is offered: no Application has a service yet, and no registry a bundle"
            .to_owned(),
    }
}

fn table(services: &[Value], colour: bool) -> String {
    let text = |value: &Value| harmless(value.as_str().unwrap_or_default());
    let mut rows = Vec::new();
    for service in services {
        for plan in service["plans"].as_array().into_iter().flatten() {
            let bindable = plan["bindable"]
                .as_bool()
                .or_else(|| service["bindable"].as_bool());
            rows.push(vec![
                text(&service["name"]),
                text(&plan["name"]),
                (if bindable == Some(true) { "yes" } else { "no" }).to_owned(),
                parameters::in_short(plan),
                text(&service["description"]),
            ]);
        }
    }
    let headers = ["OFFERING", "PLAN", "BINDABLE", "PARAMETERS", "DESCRIPTION"];
    let table = Table {
        headers: headers.map(str::to_owned).to_vec(),
        rows,
    };
    table.page(colour)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::client::stand_in::StandIn;
    use crate::cmd::testing::Screen;

    const STANDINGS: &str = "GET /heddle/v1/catalog/bundles";

    async fn run(services: Value, all: bool) -> (String, String, Vec<String>) {
        let server = StandIn::start().await;
        let body = json!({"services": services});
        server.answers("GET /heddle/v1/osb/team-a/v2/catalog", 200, &body);
        server.answers("GET /v2/catalog", 200, &body);
        server.answers("GET /api/v1/namespaces/team-a", 200, &json!({}));
        let args = Args {
            command: None,
            namespace: NamespaceArgs {
                namespace: (!all).then(|| "team-a".to_owned()),
                all_namespaces: all,
            },
            output: ReportFormat::Table,
            client: ClientArgs {
                kubeconfig: None,
                context: None,
                data_dir: "unused".into(),
            },
        };
        let screen = Screen::default();
        show(&args, &server.remote(), &mut screen.terminal())
            .await
            .unwrap();
        (screen.out(), screen.err(), server.lines())
    }

    #[tokio::test]
    async fn each_plan_is_a_line_and_says_whether_it_can_be_bound() {
        let schema = json!({"required": ["size"], "properties": {"region": {"type": "string"}, "size": {"type": "integer"}}});
        let schemas = json!({"service_instance": {"create": {"parameters": schema}}});
        let services = json!([
            {"name": "shop-events", "bindable": false, "description": "orders", "plans": [{"name": "default"}]},
            {"name": "crm", "bindable": false, "description": "people", "plans": [{"name": "api", "bindable": true, "schemas": schemas}]},
        ]);
        let (out, _, lines) = run(services, false).await;
        insta::assert_snapshot!(out, @r"
        OFFERING      PLAN      BINDABLE   PARAMETERS     DESCRIPTION
        shop-events   default   no                        orders
        crm           api       yes        size, region   people
        ");
        assert_eq!(lines, ["GET /heddle/v1/osb/team-a/v2/catalog", STANDINGS]);
    }

    #[tokio::test]
    async fn an_empty_catalog_says_what_would_fill_it() {
        let (out, err, _) = run(json!([]), false).await;
        assert_eq!(out, "");
        assert!(err.contains("ApplicationMapping"), "{err}");
        let (_, err, lines) = run(json!([]), true).await;
        assert!(err.contains("no Application"), "{err}");
        assert_eq!(lines, ["GET /v2/catalog", STANDINGS]);
    }

    #[tokio::test]
    async fn what_is_left_out_is_named_with_the_reason() {
        let server = StandIn::start().await;
        let why = "its BundleRevision r is not there";
        let standings = json!({"b1": {"name": "dh-hello", "leftOut": why}, "b2": {"name": "dh-fine", "leftOut": null}});
        server.answers(STANDINGS, 200, &standings);
        assert_eq!(
            left_out(&server.remote()).await.unwrap(),
            [format!("dh-hello is left out: {why}")]
        );
    }
}
