//! heddle-api.
