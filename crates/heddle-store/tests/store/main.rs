//! The store, from outside: what it promises, and what happens to it when it is hurt.

mod reads;
mod support;
mod watches;
mod writes;
