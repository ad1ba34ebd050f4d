//! Nobody gets more rights by naming somebody, and whoever names somebody keeps none of their own.

use http::{HeaderMap, StatusCode, header};
use jiff::Timestamp;

use super::*;
use crate::status::Result;

fn tokens() -> Tokens {
    Tokens::default()
        .with("admin", Identity::new("root", &[ADMINS]))
        .with("viewer", Identity::new("eve", &[VIEWERS]))
        .with("scraper", Identity::new("prometheus", &[SCRAPERS]))
}

fn ask(token: &str, headers: &[(&str, &str)]) -> Result<Identity> {
    let mut map = HeaderMap::new();
    map.insert(
        header::AUTHORIZATION,
        format!("Bearer {token}").parse().unwrap(),
    );
    for (name, value) in headers {
        let name: http::HeaderName = name.parse().unwrap();
        map.append(name, value.parse().unwrap());
    }
    let holder = tokens().authenticate(&map, Timestamp::UNIX_EPOCH)?;
    Ok(holder.identity)
}

#[test]
fn an_administrator_acts_with_the_rights_of_whom_they_name_and_no_others() {
    let jane = ask("admin", &[("Impersonate-User", "jane")]).unwrap();
    assert_eq!(&*jane.user, "jane");
    assert!(!jane.is_in(ADMINS) && jane.is_in("system:authenticated"));
    let viewer = [
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "developers"),
        ("Impersonate-Group", VIEWERS),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Extra-Scopes", "all"),
    ];
    let viewer = ask("admin", &viewer).unwrap();
    assert!(viewer.is_in(VIEWERS) && viewer.is_in("developers") && !viewer.is_in(ADMINS));
    let admin = [("Impersonate-User", "jane"), ("Impersonate-Group", ADMINS)];
    assert!(ask("admin", &admin).unwrap().is_in(ADMINS));
}

#[test]
fn nobody_else_may_name_anybody_and_nobody_becomes_a_controller() {
    for token in ["viewer", "scraper"] {
        for groups in [&[][..], &[VIEWERS], &[ADMINS]] {
            let mut headers = vec![("Impersonate-User", "jane")];
            headers.extend(groups.iter().map(|group| ("Impersonate-Group", *group)));
            let refused = ask(token, &headers).unwrap_err();
            assert_eq!(refused.code, StatusCode::FORBIDDEN, "{token} {groups:?}");
        }
    }
    let controller = [
        ("Impersonate-User", "system:heddle:controllers"),
        ("Impersonate-Group", CONTROLLERS),
    ];
    let refused = ask("admin", &controller).unwrap_err();
    assert_eq!(refused.code, StatusCode::FORBIDDEN);
    assert!(refused.message.contains(CONTROLLERS), "{refused}");
}

#[test]
fn headers_that_cannot_be_honoured_are_refused_and_never_ignored() {
    let cases: [&[(&str, &str)]; 6] = [
        &[("Impersonate-Group", VIEWERS)],
        &[("Impersonate-User", "")],
        &[("Impersonate-Uid", "7")],
        &[("Impersonate-Extra-Scopes", "all")],
        &[("Impersonate-User", "a"), ("Impersonate-User", "b")],
        &[("Impersonate-User", "a"), ("Impersonate-Role", "b")],
    ];
    for headers in cases {
        let refused = ask("admin", headers).unwrap_err();
        assert_eq!(refused.code, StatusCode::BAD_REQUEST, "{headers:?}");
    }
    let unknown = ask("nobody", &[("Impersonate-User", "jane")]).unwrap_err();
    assert_eq!(unknown.code, StatusCode::UNAUTHORIZED);
}

fn bearer(token: &str) -> HeaderMap {
    let value = format!("Bearer {token}").parse().unwrap();
    HeaderMap::from_iter([(header::AUTHORIZATION, value)])
}

#[test]
fn a_token_is_good_until_it_is_taken_back_or_expires() {
    let tokens = tokens();
    let start = Timestamp::UNIX_EPOCH;
    let later = Timestamp::from_second(60).unwrap();
    let ada = Identity::new("ada", &[VIEWERS]);
    let known = |who: &Identity, expires| [(digest("given"), (who.clone(), expires))].into();
    let good = |now| tokens.authenticate(&bearer("given"), now);
    assert!(good(start).is_err());
    tokens.issued().replace(known(&ada, Some(later)));
    let held = good(start).unwrap();
    assert_eq!(held.identity, ada);
    assert!(good(later).is_err(), "it expired");

    tokens.issued().replace(known(&ada, Some(later)));
    assert!(!held.ended.is_cancelled(), "nothing changed for it");
    let more = Identity::new("ada", &[VIEWERS, OPERATORS]);
    tokens.issued().replace(known(&more, None));
    assert!(held.ended.is_cancelled(), "it means something else now");
    let held = good(later).unwrap();
    tokens.issued().replace(std::collections::HashMap::new());
    assert!(held.ended.is_cancelled() && good(start).is_err());
    assert!(tokens.authenticate(&bearer("admin"), start).is_ok());
}
