//! What a query says.

/// The parameters that OSB knows; others are left alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OsbQuery {
    /// The platform would ask again later.
    pub(crate) accepts_incomplete: bool,
    pub(crate) service_id: Option<String>,
    pub(crate) plan_id: Option<String>,
    pub(crate) operation: Option<String>,
}

impl OsbQuery {
    /// Empty values count as absent. Only `true` is true: who writes something else did not mean to promise anything.
    pub(crate) fn of(query: Option<&str>) -> Self {
        let mut parsed = Self::default();
        for (key, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            let text = || (!value.is_empty()).then(|| value.clone().into_owned());
            match &*key {
                "accepts_incomplete" => parsed.accepts_incomplete = value == "true",
                "service_id" => parsed.service_id = text(),
                "plan_id" => parsed.plan_id = text(),
                "operation" => parsed.operation = text(),
                _ => {}
            }
        }
        parsed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_true_promises_to_ask_again() {
        for (query, expected) in [
            ("accepts_incomplete=true", true),
            ("accepts_incomplete=false", false),
            ("accepts_incomplete=TRUE", false),
            ("accepts_incomplete=1", false),
            ("accepts_incomplete", false),
            ("", false),
        ] {
            assert_eq!(
                OsbQuery::of(Some(query)).accepts_incomplete,
                expected,
                "{query}"
            );
        }
        let query = OsbQuery::of(Some("service_id=a%2Fb&plan_id=&operation=p+q&x=y"));
        assert_eq!(query.service_id.as_deref(), Some("a/b"));
        assert_eq!(query.plan_id, None);
        assert_eq!(query.operation.as_deref(), Some("p q"));
    }
}
