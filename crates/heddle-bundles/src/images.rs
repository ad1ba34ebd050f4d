//! Images, kept by digest.
