//! heddle-apiserver.
