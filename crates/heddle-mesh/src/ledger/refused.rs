//! What was refused lately, for whoever may look at the place where it was published.

use heddle_api::access::{Access, namespace_of};
use heddle_api::refused_events::{RefusedEvent, RefusedEvents};

use super::losses::AskedEvent;
use crate::mesh::Mesh;
use crate::path::source::refused_log::cut;

/// Refusals in one answer when nobody says how many, and at most.
pub(crate) const REFUSED_PAGE: usize = 100;
pub(crate) const REFUSED_PAGE_MAX: usize = 500;
/// Refusals of one id that are told beside its trace.
const REFUSED_TRACED_MAX: usize = 20;

/// Which refusals somebody asks for; what is absent may be anything.
#[derive(Clone, Debug, Default)]
pub struct RefusedQuery {
    pub id: Option<String>,
    pub source: Option<String>,
    pub code: Option<String>,
    pub namespace: Option<String>,
    pub limit: Option<usize>,
}

impl RefusedQuery {
    fn is(&self, event: &RefusedEvent) -> bool {
        let (id, source) = (event.id.as_deref(), event.source.as_deref());
        let namespace = namespace_of(&event.door);
        is_named(self.id.as_deref(), id)
            && is_named(self.source.as_deref(), source)
            && (self.code.as_ref()).is_none_or(|code| *code == event.code)
            && (self.namespace.as_deref()).is_none_or(|asked| namespace == Some(asked))
    }
}

/// Of a long text only the beginning is kept.
fn is_named(asked: Option<&str>, found: Option<&str>) -> bool {
    asked.is_none_or(|asked| found == Some(cut(asked).as_str()))
}

impl Mesh {
    /// The newest refusals, as far as somebody may know of them: at the places of their namespaces.
    #[must_use]
    pub fn refused_for(&self, asked: &RefusedQuery, access: &Access) -> RefusedEvents {
        let limit = asked.limit.unwrap_or(REFUSED_PAGE).min(REFUSED_PAGE_MAX);
        let refused = &self.shared.refused;
        let items = refused.newest(limit, |event| access.sees(&event.door) && asked.is(event));
        let sees_all = access.sees("");
        RefusedEvents {
            items,
            total: sees_all.then(|| refused.total()),
        }
    }

    /// Those of the event that is asked for.
    pub(super) fn refused_like(&self, asked: &AskedEvent) -> Vec<RefusedEvent> {
        let is_asked = |event: &RefusedEvent| {
            is_named(Some(&asked.id), event.id.as_deref())
                && is_named(asked.source.as_deref(), event.source.as_deref())
                && asked.visible.shows_consumer(&event.door)
        };
        self.shared.refused.newest(REFUSED_TRACED_MAX, is_asked)
    }
}
