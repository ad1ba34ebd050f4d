//! heddle-controllers.
