//! The page about refused events, from the table of their codes.

use std::fmt::Write as _;

use heddle_api::refusals::ALL;

const INTRODUCTION: &str = "\
# Refused events

A publish that is not accepted is answered with JSON: a stable `code`, a `message` that says what is wrong with this event and
what to send instead, the `attribute` it is about, and in a batch the `index` of the event, counted from 0. A batch is accepted
whole or not at all. Codes are never given another meaning.

| code | status | what it means | what to do |
|---|---|---|---|
";

const END: &str = "
Two refusals come without a code, because they are answered before anybody has looked for an event:

| status | what it means | what to do |
|---|---|---|
| 400, empty | the request is not HTTP | correct the client |
| 431, empty | the headers have more bytes than the [limits](../operating/limits.md) allow | send the event in structured mode |

At the paths of [old Kyma's publish API](../operating/legacy.md) the same refusals have the form of that API, without these codes.

## What is not refused

In binary mode the body is the data, byte for byte, whatever its content type says: a body that is not JSON is accepted with
`application/json`, as the specification has it, and delivered as it came. A subscriber that asked for structured mode gets it as
`data_base64`. In structured mode and in batches the whole document must be JSON, the data included.
";

pub(super) fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for refused in ALL {
        writeln!(
            page,
            "| `{}` | {} | {} | {} |",
            refused.code, refused.status, refused.meaning, refused.remedy
        )
        .expect("text takes what is written");
    }
    page.push_str(END);
    page
}
