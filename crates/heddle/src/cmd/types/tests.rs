use super::*;

#[test]
fn a_type_that_nobody_wants_is_told_as_that() {
    let seen = |type_: &str, consumers: &[&str]| SeenType {
        type_: type_.to_owned(),
        source: "shop".to_owned(),
        entry: "channel/kyma-integration/shop".to_owned(),
        count: 3,
        consumers: consumers.iter().map(|name| (*name).to_owned()).collect(),
        ..SeenType::default()
    };
    let types = SeenTypes {
        items: vec![
            seen("order.created", &["trigger/team-a/orders"]),
            seen("order.\u{1b}[31mpaid", &["a", "b"]),
            seen("order.lost", &[]),
        ],
        examined: 9,
        since: None,
        looked_back_to: Some(4),
        left_out: 2,
    };
    let text = table(&types, false);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].ends_with("trigger/team-a/orders"), "{text}");
    assert!(lines[2].ends_with("2 consumers"), "{text}");
    assert!(lines[3].ends_with("nobody"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    assert!(
        text.ends_with("among the newest 9 events, back to place 4; 2 types or more left out\n"),
        "{text}"
    );
    assert_eq!(table(&SeenTypes::default(), false), "no event was seen\n");
}
