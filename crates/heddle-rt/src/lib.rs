//! The world as heddle sees it: time, chance, files, network, tasks and shutdown.
//!
//! Everything that could make two runs differ comes through here, so that the whole system runs
//! under simulation: the same seed gives the same run. `clippy.toml` bans the direct ways.
//! What any of it is used for is left to the crates above.

pub mod backoff;
pub mod budget;
pub mod chance;
pub mod clock;
pub mod metrics;
pub mod net;
pub mod shutdown;
pub mod tasks;
pub mod telemetry;
pub mod vfs;

pub use backoff::{Backoff, KeyedBackoff};
pub use budget::Budget;
pub use chance::Chance;
pub use clock::{Clock, Elapsed};
pub use shutdown::Shutdown;
pub use tasks::{OnError, Tasks};
pub use vfs::{DiskVfs, MemoryVfs, Vfs, VfsFile};
