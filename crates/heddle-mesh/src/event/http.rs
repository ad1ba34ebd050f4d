//! How an event travels over HTTP, in binary, structured and batched mode.
