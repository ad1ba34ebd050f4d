//! Hop 5: decide which events a consumer wants.
