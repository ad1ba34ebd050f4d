//! heddle-sim.
