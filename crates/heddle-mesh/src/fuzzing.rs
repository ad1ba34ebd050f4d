//! For the fuzzer: what reads strangers' bytes here and is not public.

pub use crate::event::fuzzing::attribute;
pub use crate::ledger::hints::fuzzing::segment as segment_hints;
pub use crate::path::delivery::consent_fuzzing::headers as answer_headers;
pub use crate::path::delivery::pool_fuzzing::answer;
pub use crate::path::source::legacy::fuzzing::publish as legacy_publish;
pub use crate::path::trigger::fuzzing::filters;

#[cfg(test)]
mod tests;
