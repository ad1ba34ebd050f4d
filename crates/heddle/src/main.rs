//! The binary. What it does is in the library beside it; here is what a process has once.

use std::process::ExitCode;

/// Measured on the control plane: it halves the wall time of a reconcile storm against glibc's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    heddle::main()
}
