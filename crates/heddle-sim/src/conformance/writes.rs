//! Writing: create, replace and patch, what is validated on the way, and what is left alone.

mod create;
mod patch;
mod replace;
mod validate;

use super::Check;

pub(super) fn checks() -> Vec<Check> {
    [
        create::checks(),
        validate::checks(),
        replace::checks(),
        patch::checks(),
    ]
    .concat()
}
