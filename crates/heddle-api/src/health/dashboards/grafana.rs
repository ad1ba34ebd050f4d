//! Dashboards in the JSON that Grafana imports, two panels beside each other.

use serde_json::{Value, json};

use super::{Dashboard, Panel, PanelUnit};

/// The version of the format; newer Grafanas read it and bring it up to date.
const SCHEMA: u32 = 38;
/// Of the 24 columns of a dashboard.
const PANEL_WIDTH: usize = 12;
const PANEL_HEIGHT: usize = 8;
const PANELS_IN_A_ROW: usize = 2;

pub(super) fn dashboard(dashboard: &Dashboard) -> Value {
    let panels = dashboard.panels.iter().enumerate();
    let panels: Vec<Value> = panels.map(|(index, one)| panel(index, one)).collect();
    json!({
        "uid": format!("heddle-{}", dashboard.slug),
        "title": format!("heddle / {}", dashboard.title),
        "description": dashboard.about,
        "tags": ["heddle"],
        "schemaVersion": SCHEMA,
        "editable": true,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": variables()},
        "panels": panels,
    })
}

fn variables() -> Vec<Value> {
    let mut variables = vec![json!({
        "name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus",
    })];
    for (name, label, query) in [
        ("job", "Job", "label_values(heddle_api_store_serving, job)"),
        (
            "app",
            "Application",
            "label_values(heddle_published_total{job=~\"$job\"}, app)",
        ),
        (
            "ns",
            "Namespace",
            "label_values(heddle_matched_total{job=~\"$job\"}, ns)",
        ),
    ] {
        variables.push(json!({
            "name": name, "label": label, "type": "query", "datasource": datasource(),
            "query": {"query": query, "refId": name}, "refresh": 2, "sort": 1,
            // Everything, and what has no name.
            "includeAll": true, "multi": true, "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
        }));
    }
    variables
}

fn datasource() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}

fn panel(index: usize, panel: &Panel) -> Value {
    let queries = ('A'..).zip(panel.queries).map(|(letter, query)| {
        json!({
            "refId": letter, "datasource": datasource(), "expr": query.expression,
            "legendFormat": query.legend, "range": true,
        })
    });
    let queries: Vec<Value> = queries.collect();
    let (column, row) = (index % PANELS_IN_A_ROW, index / PANELS_IN_A_ROW);
    json!({
        "id": index + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.about,
        "datasource": datasource(),
        "gridPos": {"x": column * PANEL_WIDTH, "y": row * PANEL_HEIGHT, "w": PANEL_WIDTH, "h": PANEL_HEIGHT},
        "fieldConfig": {"defaults": field(panel.unit), "overrides": []},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": true},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": queries,
    })
}

/// How numbers are shown.
fn field(unit: PanelUnit) -> Value {
    let word = match unit {
        PanelUnit::Rate => "cps",
        PanelUnit::Count | PanelUnit::Health => "short",
        PanelUnit::Seconds => "s",
        PanelUnit::Bytes => "bytes",
        PanelUnit::Share => "percentunit",
    };
    let mut field = json!({"unit": word, "min": 0});
    if unit == PanelUnit::Health {
        field["max"] = json!(3);
        field["mappings"] = json!([{"type": "value", "options": {
            "0": {"text": "Unhealthy", "color": "red"}, "1": {"text": "Unknown", "color": "purple"},
            "2": {"text": "Degraded", "color": "orange"}, "3": {"text": "Healthy", "color": "green"},
        }}]);
    }
    field
}
