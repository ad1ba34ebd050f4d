//! What the mesh knows of its own health, gathered without reading the log.

use heddle_api::dataplane::MeshReading;

use crate::mesh::Mesh;

impl Mesh {
    /// The evidence for health, at this moment.
    #[must_use]
    pub fn reading(&self) -> MeshReading {
        MeshReading {
            routing: self.is_routing(),
            ..MeshReading::default()
        }
    }
}
