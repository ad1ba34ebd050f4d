//! heddle-store.
