//! The event log, from outside: what it promises, and what happens to it when it is hurt.

mod basics;
mod crash;
mod damage;
mod faults;
mod files;
mod model;
mod story;
mod support;
mod threads;
mod twist;
