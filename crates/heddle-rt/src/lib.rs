//! heddle-rt.
