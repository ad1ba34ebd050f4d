//! The store, from outside: what it promises, and what happens to it when it is hurt.

mod backup;
mod crash;
mod damage;
mod disk;
mod faults;
mod model;
mod planted;
mod reads;
mod repair;
mod script;
mod support;
mod watches;
mod writes;
