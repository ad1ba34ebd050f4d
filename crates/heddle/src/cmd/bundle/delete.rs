//! `heddle bundle delete --force`: away with a bundle, without waiting for the sweep.
//!
//! While an instance or binding refers to it, its finalizer holds it, and this command refuses. With `--orphan` it takes the
//! finalizer away too, and names everything that loses its offering by that.

use heddle_api::Bundle;
use heddle_api::bundle::BundlePhase;
use heddle_api::well_known::FINALIZER;
use http::StatusCode;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::core::params::GetParams;
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Value, json};

use super::listing::{BundleList, Reference, counted, image, phase, references};
use crate::client::{ClientArgs, FIELD_MANAGER, Remote};
use crate::failure::Failure;
use crate::output::{ReportFormat, harmless};
use crate::terminal::Terminal;

/// How often a bundle that somebody else changes meanwhile is looked at again.
const ATTEMPTS_MAX: usize = 5;

#[derive(Debug, clap::Args)]
pub(in crate::cmd) struct Args {
    /// The bundle: name or id of its offering, image, or name of its object
    #[arg(value_name = "BUNDLE")]
    word: String,

    /// Really; `heddle bundle withdraw` is the gentle way
    #[arg(long)]
    force: bool,

    /// Even if instances or bindings refer to it, which cannot be operated any more then
    #[arg(long, requires = "force")]
    orphan: bool,

    /// How to show the result
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    pub(super) client: ClientArgs,
}

impl Args {
    /// Deleting is never an accident.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match self.force {
            true => Ok(()),
            false => Err(Failure::Usage(format!(
                "a bundle that nothing uses is swept once it is withdrawn: `heddle bundle withdraw {}`; pass --force to \
                 delete it now",
                self.word
            ))),
        }
    }
}

pub(super) async fn delete(
    args: &Args,
    remote: &Remote,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    args.check()?;
    let bundle_list = BundleList::fetch(remote).await?;
    let bundle = bundle_list.pick(&args.word, remote).await?;
    let name = harmless(&format!("{} ({})", bundle_list.name(bundle), image(bundle)));
    let used = references(&bundle.spec.service_id, remote).await?;
    if !used.is_empty() && !args.orphan {
        let text = format!(
            "{name} is in use by {}: {}; deprovision them, or pass --orphan to leave them without their offering",
            counted(&used),
            listed(&used)
        );
        return Err(Failure::Conflict(text).into());
    }
    let state = match remove(bundle, remote).await? {
        None => "deleted",
        Some(left) if args.orphan => release(left, remote).await?,
        Some(_) => "deleting",
    };
    let report = json!({
        "bundle": bundle.name_any(), "serviceID": bundle.spec.service_id, "image": image(bundle), "state": state,
        "orphans": used.iter().map(Reference::to_json).collect::<Vec<_>>(),
    });
    let text = args.output.render(&report, |_| {
        let mut text = match state {
            "deleted" => format!("{name} is deleted\n"),
            _ => format!("{name} is being deleted; it goes when its finalizers are gone\n"),
        };
        for reference in &used {
            text.push_str(&format!(
                "  {} cannot be operated any more\n",
                reference.shown()
            ));
        }
        text
    });
    terminal.print(&text)?;
    if phase(bundle) == BundlePhase::Live {
        let registry = harmless(&bundle.spec.registry);
        terminal.warn(&format!(
            "registry {registry} still has it, so it comes back with the next reading; deny it there, or withdraw it instead"
        ));
    }
    Ok(())
}

fn listed(references: &[Reference]) -> String {
    references
        .iter()
        .map(Reference::shown)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Asks for the deletion of exactly this bundle. Answers with what is left of it while its finalizer holds it.
async fn remove(bundle: &Bundle, remote: &Remote) -> anyhow::Result<Option<Value>> {
    let shown = format!("bundle/{}", bundle.name_any());
    let params = DeleteParams::default().preconditions(Preconditions {
        uid: bundle.uid(),
        resource_version: None,
    });
    let request = requests().delete(&bundle.name_any(), &params)?;
    let answer = remote.send(request).await?;
    if answer.code == StatusCode::NOT_FOUND {
        return Ok(None);
    }
    let object = answer.ok(&shown)?;
    let held = |object: &Value| {
        let finalizers = object["metadata"]["finalizers"].as_array();
        finalizers.is_some_and(|finalizers| !finalizers.is_empty())
    };
    Ok(Some(object).filter(held))
}

/// Takes the finalizer away that waits for references; those of others stay. Answers how far the deletion has come.
async fn release(mut object: Value, remote: &Remote) -> anyhow::Result<&'static str> {
    let name = object["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let uid = object["metadata"]["uid"].clone();
    let shown = format!("bundle/{name}");
    for _ in 0..ATTEMPTS_MAX {
        let metadata = &object["metadata"];
        let finalizers = metadata["finalizers"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        if metadata["uid"] != uid {
            return Ok("deleted");
        }
        let others: Vec<&Value> = finalizers
            .iter()
            .filter(|held| *held != FINALIZER)
            .collect();
        let patch = json!({"metadata": {
            "uid": uid, "resourceVersion": metadata["resourceVersion"], "finalizers": others,
        }});
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let request = requests().patch(&name, &params, &Patch::Merge(&patch))?;
        let answer = remote.send(request).await?;
        match answer.code {
            StatusCode::NOT_FOUND => return Ok("deleted"),
            // Somebody wrote its status meanwhile.
            StatusCode::CONFLICT => {
                let request = requests().get(&name, &GetParams::default())?;
                let answer = remote.send(request).await?;
                if answer.code == StatusCode::NOT_FOUND {
                    return Ok("deleted");
                }
                object = answer.ok(&shown)?;
            }
            _ => {
                answer.ok(&shown)?;
                return Ok(if others.is_empty() {
                    "deleted"
                } else {
                    "deleting"
                });
            }
        }
    }
    let text = format!("{shown} is changed by somebody else all the time; try again");
    Err(Failure::Conflict(text).into())
}

fn requests() -> kube::core::Request {
    kube::core::Request::new(Bundle::url_path(&(), None))
}
