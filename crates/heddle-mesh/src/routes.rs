//! The compiled table: from where an event came in to who wants it.
