use heddle_api::description;

use super::super::index;
use super::*;

fn text(offer: &Offer<'_>) -> String {
    offer.description().to_string()
}

/// A chart as its newest version, when others can be chosen.
fn newest<'a>(name: &'a str, chart: &'a Chart, runner: &'a Digest) -> Offer<'a> {
    Offer {
        repository: "https://charts.example/stable",
        name,
        chart,
        release: &chart.releases[0],
        is_fixed: false,
        runner,
    }
}

#[test]
fn a_chart_is_described_as_its_newest_version_and_the_runner_are() {
    let index = index::read(
        b"apiVersion: v1\ngenerated: now\nentries:\n  redis:\n  - {version: 1.0.0}\n  - {version: 2.0.0+x, description: \"a\\n cache\\u0007\", icon: 'data:image/png;base64,AAAA', home: 'https://redis.example'}\n",
    );
    let index = index.unwrap();
    let chart = &index.charts["redis"];
    let runner = Digest::of(b"runner");
    let offer = newest("redis", chart, &runner);
    let (members, description) = description::read(&text(&offer)).unwrap();
    assert_eq!(description.description, "a cache");
    assert_eq!(
        members["metadata"]["documentationUrl"],
        "https://redis.example"
    );
    assert_eq!(members["metadata"]["imageUrl"], Value::Null);
    let version = description.version().unwrap();
    assert_eq!(version, format!("2.0.0+x.runner.{}", &runner.hex()[..8]));
    assert!(
        semver::Version::parse(&version).is_ok(),
        "platforms take only these"
    );
    let plan = &description.plans[0];
    let said: Vec<String> = plan
        .parameters
        .iter()
        .map(|one| {
            let choices = one
                .choices
                .as_ref()
                .map(|choices| json!(choices).to_string());
            format!(
                "{} {} {}",
                one.name,
                choices.unwrap_or_default(),
                one.updatable
            )
        })
        .collect();
    assert_eq!(
        said,
        [
            r#"repo ["https://charts.example/stable"] false"#,
            r#"chart ["redis"] false"#,
            r#"version ["2.0.0+x","1.0.0"] true"#,
            "values  true",
        ]
    );
    assert_eq!(plan.parameters[2].default, Some(json!("2.0.0+x")));

    let fixed = Offer {
        release: &chart.releases[1],
        is_fixed: true,
        ..offer
    };
    let (_, description) = description::read(&text(&fixed)).unwrap();
    let choices = description.plans[0].parameters[2].choices.clone();
    assert_eq!(choices, Some(vec![json!("1.0.0")]));
    let other = Digest::of(b"another runner");
    let moved = Offer {
        runner: &other,
        ..offer
    };
    assert_ne!(
        text(&moved),
        text(&offer),
        "another runner is another revision"
    );
}

#[test]
fn a_chart_with_very_many_versions_makes_a_schema_that_platforms_take() {
    let mut index = String::from("apiVersion: v1\ngenerated: now\nentries:\n  many:\n");
    for minor in 0..5000 {
        index.push_str(&format!("  - {{version: 1.{minor}.0}}\n"));
    }
    let index = index::read(index.as_bytes()).unwrap();
    let chart = &index.charts["many"];
    let runner = Digest::of(b"runner");
    let offer = newest("many", chart, &runner);
    let (_, description) = description::read(&text(&offer)).unwrap();
    let choices = description.plans[0].parameters[2].choices.clone().unwrap();
    assert_eq!(
        (choices.len(), &choices[0]),
        (VERSIONS_MAX, &json!("1.4999.0"))
    );
    assert!(
        chart.release("1.0.0").is_some(),
        "by name, every one can be had"
    );
}
