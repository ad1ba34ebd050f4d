//! Changing the way in which Applications are offered, which is refused while anything is provisioned.
//!
//! The way decides the ids of offerings and plans, and platforms know their instances by these. After a switch the ids of live
//! instances would be in no catalog, or mean something else. Serving both ways at once would offer everything twice. So
//! the switch is refused at the start, to whoever made it and while it is easily taken back, naming the instances in the way.

use heddle_api::ServiceInstance;
use heddle_api::offer::Mode;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};

/// Instances asked for at once.
const PAGE: u32 = 500;
/// Instances named in a refusal; the rest are counted.
const NAMED_MAX: usize = 10;

/// Why heddle must not start with this way of offering.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// Take the change back, or remove the instances.
    #[error(
        "the catalog mapping is {wanted}, but {} provisioned under {other}: deprovision what is there or set it back to {other} ({named})",
        heddle_api::counted_that(.count.to_owned(), "instance", "was", "were")
    )]
    InUse {
        wanted: Mode,
        other: Mode,
        count: usize,
        /// Some of them, as `namespace/name`.
        named: String,
    },
    #[error("cannot look for instances that were provisioned under another catalog mapping")]
    Unknown(#[from] kube::Error),
}

/// Refuses a way of offering under which live instances would not be found again.
pub async fn refuse_switch(client: &Client, wanted: Mode) -> Result<(), SwitchError> {
    let api = Api::<ServiceInstance>::all(client.clone());
    let mut page = ListParams::default().limit(PAGE);
    let (mut count, mut named, mut under) = (0, Vec::new(), None);
    loop {
        let list = api.list(&page).await?;
        for instance in &list.items {
            let Some(other) = Mode::of_instance(&instance.spec).filter(|mode| *mode != wanted)
            else {
                continue;
            };
            under = Some(other);
            count += 1;
            if named.len() < NAMED_MAX {
                let namespace = instance.namespace().unwrap_or_default();
                named.push(format!("{namespace}/{}", instance.name_any()));
            }
        }
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => break,
        }
    }
    let Some(other) = under else {
        return Ok(());
    };
    if count > named.len() {
        named.push(format!("and {} more", count - named.len()));
    }
    Err(SwitchError::InUse {
        wanted,
        other,
        count,
        named: named.join(", "),
    })
}
