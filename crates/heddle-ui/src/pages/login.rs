//! The way in: a token, once. With a script the session has two halves; without one it is good for reading.

use maud::{Markup, html};

use crate::links::PageLinks;
use crate::visit::Visit;

/// What is in the frame. `next` is where to go afterwards; it stays on this page whatever it says.
pub(crate) fn main(visit: &Visit, links: &PageLinks) -> Markup {
    let next = next(visit.text("next").as_deref(), links);
    html! {
        main #main tabindex="-1" data-page="login" {
            section.card.login {
                h1 { img src=(links.page(&crate::assets::path("icon.svg"))) alt="" width="30" height="30"; " heddle" }
                p { "Log in with a token." }
                @if let Some(fault) = visit.text("fault") {
                    p.notice role="alert" { @match fault.as_str() {
                        "wrong" => "This token is not known here. Check that it was copied whole.",
                        "norole" => "This token is good, and has no role here.",
                        "busy" => "Too many wrong tokens came from your address. Wait a minute.",
                        _ => "That did not work. Try again.",
                    } }
                }
                p #login-fault.notice role="alert" hidden {}
                form #login method="post" action=(links.page("login")) {
                    label for="token" { "Token" }
                    input #token name="token" type="password" required autocomplete="off" spellcheck="false" autofocus;
                    input type="hidden" name="next" value=(next);
                    button.primary type="submit" { "Log in" }
                }
                details {
                    summary { "Where is a token?" }
                    p { "The administrator's is in " code { "admin.kubeconfig" } " in the data directory of the server. " code { "heddle ui" } " opens this page logged in." }
                    p.quiet { "A token is exchanged for a session and is not kept by the browser." }
                }
                noscript {
                    p.notice { "Without a script you get a session for reading. Its cookie alone opens these pages: another program on this machine that you visit with this browser could read along until the session ends." }
                }
            }
        }
    }
}

/// A page of this server, whatever somebody put into a link.
fn next(wanted: Option<&str>, links: &PageLinks) -> String {
    let home = links.page("");
    let wanted = wanted.filter(|wanted| {
        let is_plain = wanted
            .chars()
            .all(|character| !character.is_control() && character != '\\');
        wanted.starts_with(&home) && is_plain && !wanted.contains("//")
    });
    wanted.unwrap_or(&home).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_elsewhere_after_logging_in() {
        let links = PageLinks::new("");
        assert_eq!(
            next(Some("/ui/applications/shop?ns=a"), &links),
            "/ui/applications/shop?ns=a"
        );
        for elsewhere in [
            "//evil.example/ui/",
            "https://evil.example",
            "/ui/..//evil.example",
            "javascript:x",
            "\\ui\\",
            "/",
        ] {
            assert_eq!(next(Some(elsewhere), &links), "/ui/", "{elsewhere}");
        }
        assert_eq!(next(None, &links), "/ui/");
    }
}
