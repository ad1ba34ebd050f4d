//! What Grafana would stumble over, and what a reader would.

use std::collections::BTreeSet;

use super::*;

#[test]
fn there_are_six_and_each_has_a_name_and_words_of_its_own() {
    assert_eq!(DASHBOARDS.len(), 6);
    let files: BTreeSet<String> = DASHBOARDS.iter().map(Dashboard::file_name).collect();
    assert_eq!(files.len(), DASHBOARDS.len());
    for dashboard in DASHBOARDS {
        let titles: BTreeSet<&str> = dashboard.panels.iter().map(|panel| panel.title).collect();
        assert_eq!(titles.len(), dashboard.panels.len(), "{}", dashboard.slug);
        for panel in dashboard.panels {
            let words = [panel.title, panel.about];
            assert!(words.iter().all(|word| !word.is_empty()), "{}", panel.title);
            assert!(!panel.queries.is_empty(), "{}", panel.title);
            for query in panel.queries {
                let asked = query.expression;
                assert!(asked.contains("job=~\"$job\""), "{asked} is about any job");
                assert!(!query.legend.is_empty(), "{asked}");
            }
        }
    }
}

#[test]
fn panels_have_places_of_their_own_units_and_the_chosen_datasource() {
    for dashboard in DASHBOARDS {
        let json = dashboard.grafana();
        let variables: Vec<&str> = json["templating"]["list"]
            .as_array()
            .unwrap()
            .iter()
            .map(|variable| variable["name"].as_str().unwrap())
            .collect();
        assert_eq!(variables, ["datasource", "job", "app", "ns"]);
        let panels = json["panels"].as_array().unwrap();
        let places: BTreeSet<String> = panels
            .iter()
            .map(|panel| panel["gridPos"].to_string())
            .collect();
        assert_eq!(places.len(), dashboard.panels.len());
        for panel in panels {
            assert!(panel["fieldConfig"]["defaults"]["unit"].is_string());
            assert_eq!(panel["targets"][0]["refId"], "A");
            for target in panel["targets"].as_array().unwrap() {
                assert_eq!(target["datasource"]["uid"], "${datasource}");
            }
        }
    }
}
