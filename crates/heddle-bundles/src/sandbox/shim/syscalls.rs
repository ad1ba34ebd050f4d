//! Which system calls a program may not make.
//!
//! Everything that a program needs for its work is allowed, whatever language it is written in. What is refused are the calls by
//! which sandboxes were left in the past and that no action needs: namespaces and mounts of its own, looking into other
//! processes, the kernel's keys, modules and programs, asynchronous rings, families of sockets that few have tested. The user
//! namespace refuses most of them as well; this is a wall that does not depend on it.
//!
//! A call is refused with an error and not with death: programs that try whether they may go on without.

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

/// Numbers of the second ABI of x86-64 (x32) begin here; the same calls are refused there.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

/// Refused whatever the arguments are.
const REFUSED: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

/// Refused where they exist.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] = &[
    libc::SYS_ioperm,
    libc::SYS_iopl,
    libc::SYS_modify_ldt,
    // Of calls that are refused, those that have a number of their own in the second ABI: ptrace, kexec_load,
    // process_vm_readv, process_vm_writev. Old kernels take them without the ABI's bit as well.
    521,
    528,
    539,
    540,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[];

/// Flags of `clone` that make a namespace.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
];

/// Sockets that programs may have; netlink is how names and addresses are looked up.
const FAMILIES: [libc::c_int; 4] = [
    libc::AF_UNIX,
    libc::AF_INET,
    libc::AF_INET6,
    libc::AF_NETLINK,
];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Binds this process and all that come from it, for good.
pub(super) fn restrict() -> Result<(), String> {
    let told = |error: &dyn std::fmt::Display| format!("cannot filter system calls: {error}");
    for (rules, errno) in filters().map_err(|error| told(&error))? {
        let program = compiled(rules, errno).map_err(|error| told(&error))?;
        apply_filter(&program).map_err(|error| told(&error))?;
    }
    Ok(())
}

/// The calls of each filter, and what they are answered with.
fn filters() -> Result<[(Rules, libc::c_int); 2], seccompiler::BackendError> {
    // Its flags lie in memory, where a filter cannot look. C libraries take this answer for an old kernel and use `clone`.
    let unknown = with_both_abis([(libc::SYS_clone3, Vec::new())]);
    let always = REFUSED.iter().chain(REFUSED_HERE);
    let always = always.map(|call| (*call, Vec::new()));
    let some = [
        (libc::SYS_clone, namespaces()?),
        (libc::SYS_socket, families()?),
    ];
    let refused = with_both_abis(always.chain(some));
    Ok([(unknown, libc::ENOSYS), (refused, libc::EPERM)])
}

fn compiled(rules: Rules, errno: libc::c_int) -> Result<BpfProgram, seccompiler::BackendError> {
    let errno = SeccompAction::Errno(errno.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::Allow, errno, arch)?.try_into()
}

#[cfg(target_arch = "x86_64")]
fn with_both_abis(calls: impl IntoIterator<Item = (i64, Vec<SeccompRule>)>) -> Rules {
    let both =
        |(call, rules): (i64, Vec<SeccompRule>)| [(call, rules.clone()), (call | X32, rules)];
    calls.into_iter().flat_map(both).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn with_both_abis(calls: impl IntoIterator<Item = (i64, Vec<SeccompRule>)>) -> Rules {
    calls.into_iter().collect()
}

/// One rule for each flag: any of them is enough.
fn namespaces() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let rule = |flag: &libc::c_int| {
        let flag = u64::from(flag.cast_unsigned());
        let is_set = SeccompCmpOp::MaskedEq(flag);
        let flags = SeccompCondition::new(0, SeccompCmpArgLen::Dword, is_set, flag)?;
        SeccompRule::new(vec![flags])
    };
    NAMESPACES.iter().map(rule).collect()
}

/// One rule with a condition for each family: it must be none of them.
fn families() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let other = |family: &libc::c_int| {
        let family = u64::from(family.cast_unsigned());
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)
    };
    let conditions: Result<Vec<_>, _> = FAMILIES.iter().map(other).collect();
    Ok(vec![SeccompRule::new(conditions?)?])
}

#[cfg(test)]
mod tests;
