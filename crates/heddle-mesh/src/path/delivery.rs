//! Hop 6: attempt, back off, time out, respect the window.
