//! A heddle that was built without the import of an Automation Service Broker's configuration: the same name as in `asb.rs`,
//! and nobody behind it.

use crate::failure::Failure;
use crate::registries::RegistryObjects;

/// Refuses any file, and says how to get what would read it.
pub(crate) fn import(_: &str) -> Result<RegistryObjects, Failure> {
    let text = "this heddle was built without the feature `import-asb`, which reads the configuration of an Automation Service \
                Broker; build it with `cargo build --release`, which has it";
    Err(Failure::Usage(text.to_owned()))
}
