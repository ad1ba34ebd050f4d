//! What the mesh knows of its own health, gathered without reading the log.

use heddle_api::dataplane::MeshReading;

use crate::heartbeat::PathFacts;
use crate::mesh::Mesh;

impl Mesh {
    /// The evidence for health, at this moment.
    #[must_use]
    pub fn reading(&self) -> MeshReading {
        let shared = &self.shared;
        let in_force = shared.in_force.load_full();
        let held = self.forgets();
        let facts = PathFacts {
            table: &in_force.table,
            held: held.as_deref(),
            faults: &shared.faults,
        };
        let (heartbeats, canary) = shared.heartbeats.readings(&facts);
        MeshReading {
            routing: in_force.ready,
            heartbeats,
            canary,
            ..MeshReading::default()
        }
    }
}
