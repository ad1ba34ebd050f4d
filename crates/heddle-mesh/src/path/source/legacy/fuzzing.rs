//! For the fuzzer: any bytes, taken for the body of a publish in the old API.

use http::HeaderMap;

use super::body::{BodyForm, LegacyBody};
use super::translate::Translation;
use crate::event::http::Limits;

/// The bytes are read in both forms: refused in that API's words, or an event whose data stands in them byte for byte.
///
/// # Panics
/// When the promise does not hold.
pub fn publish(soup: &[u8]) {
    for form in [BodyForm::V1, BodyForm::V2] {
        let body = match LegacyBody::read(soup, form) {
            Ok(body) => body,
            Err(error) => {
                assert!(error.status.is_client_error());
                continue;
            }
        };
        let strict = body.check(form, true);
        let Ok(lenient) = body.check(form, false) else {
            assert!(strict.is_err(), "strictness took what was refused");
            continue;
        };
        assert_eq!(strict.is_err(), lenient, "it is one or the other");
        let translation = Translation {
            form,
            application: "shop",
            id: "00000000-0000-0000-0000-000000000000",
            headers: &HeaderMap::new(),
            limits: &Limits::default(),
        };
        let Ok((event, _)) = translation.event(&body) else {
            continue;
        };
        let data = event.data().expect("checked");
        let stands = soup.windows(data.len().max(1)).any(|part| *part == *data);
        assert!(form == BodyForm::V2 || stands, "the data was changed");
        assert_eq!((event.source(), event.type_()), ("shop", &*body.type_));
    }
}
