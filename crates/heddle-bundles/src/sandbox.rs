//! Runs of actions, each shut in.
