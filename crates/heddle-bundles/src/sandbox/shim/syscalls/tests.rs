//! What the compiled filters answer, asked as the kernel asks them: by interpreting their instructions.
//!
//! In a sandbox most of these calls fail for want of privileges as well, so a filter that lets them through would not be
//! noticed there.

use seccompiler::sock_filter;

use super::*;

/// What the filters say to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Allowed,
    Refused(libc::c_int),
    Killed,
}

/// How the kernel calls the machine that this is.
#[cfg(target_arch = "x86_64")]
const MACHINE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const MACHINE: u32 = 0xc000_00b7;

/// Machines of 32 bits, whose calls have other numbers and which the same processor may pretend to be.
const OTHER_MACHINES: [u32; 2] = [0x4000_0003, 0x4000_0028];

/// The numbers under which a call can be made.
fn numbers(call: i64) -> Vec<i64> {
    #[cfg(target_arch = "x86_64")]
    return vec![call, call + 0x4000_0000];
    #[cfg(not(target_arch = "x86_64"))]
    return vec![call];
}

/// What all filters together say: the strictest answer counts.
fn ask_as(machine: u32, call: i64, first: u64) -> Answer {
    let answers = filters().unwrap().map(|(rules, errno)| {
        let program = compiled(rules, errno).unwrap();
        run(&program, &seen_by_filters(machine, call, first))
    });
    let strictest = |wanted: fn(&Answer) -> bool| answers.iter().copied().find(wanted);
    strictest(|answer| *answer == Answer::Killed)
        .or_else(|| strictest(|answer| *answer != Answer::Allowed))
        .unwrap_or(Answer::Allowed)
}

fn ask(call: i64, first: u64) -> Answer {
    ask_as(MACHINE, call, first)
}

/// The call as the kernel lays it before a filter: number, machine, where it was made, six arguments.
fn seen_by_filters(machine: u32, call: i64, first: u64) -> Vec<u8> {
    let number = u32::try_from(call).unwrap();
    let mut seen = Vec::new();
    seen.extend(number.to_le_bytes());
    seen.extend(machine.to_le_bytes());
    seen.extend([0; 8]);
    seen.extend(first.to_le_bytes());
    seen.extend([0; 40]);
    seen
}

/// The instructions that filters are made of.
fn run(program: &[sock_filter], seen: &[u8]) -> Answer {
    let (mut at, mut value) = (0, 0_u32);
    loop {
        let sock_filter { code, jt, jf, k } = program[at].clone();
        at += 1;
        let jump = |is: bool| usize::from(if is { jt } else { jf });
        match code {
            0x20 => {
                let word = &seen[k as usize..k as usize + 4];
                value = u32::from_le_bytes(word.try_into().unwrap());
            }
            0x54 => value &= k,
            0x05 => at += k as usize,
            0x15 => at += jump(value == k),
            0x25 => at += jump(value > k),
            0x35 => at += jump(value >= k),
            0x45 => at += jump(value & k != 0),
            0x06 => return answer(k),
            other => panic!("instruction {other:#x} is not known here"),
        }
    }
}

fn answer(returned: u32) -> Answer {
    match (returned >> 16, returned & 0xffff) {
        (0x7fff, _) => Answer::Allowed,
        (0x0005, errno) => Answer::Refused(i32::try_from(errno).unwrap()),
        (0x8000 | 0, _) => Answer::Killed,
        other => panic!("answer {other:x?} is not known here"),
    }
}

const REFUSED_FOR_GOOD: Answer = Answer::Refused(libc::EPERM);

#[test]
fn the_calls_by_which_sandboxes_were_left_are_refused() {
    let ways_out = [
        // Namespaces, roots and mounts of its own.
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_chroot,
        libc::SYS_pivot_root,
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_open_tree,
        libc::SYS_move_mount,
        libc::SYS_fsopen,
        libc::SYS_fsconfig,
        libc::SYS_fsmount,
        libc::SYS_fspick,
        libc::SYS_mount_setattr,
        // Files by handles, which know no root.
        libc::SYS_name_to_handle_at,
        libc::SYS_open_by_handle_at,
        // Other processes.
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_process_madvise,
        libc::SYS_pidfd_getfd,
        libc::SYS_kcmp,
        // Programs inside of the kernel, and what has let others in.
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
        libc::SYS_fanotify_init,
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_delete_module,
        libc::SYS_kexec_load,
        libc::SYS_kexec_file_load,
        // Keys that belong to users and not to namespaces.
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_keyctl,
        // The machine as a whole.
        libc::SYS_reboot,
        libc::SYS_syslog,
        libc::SYS_acct,
        libc::SYS_quotactl,
        libc::SYS_swapon,
        libc::SYS_swapoff,
        libc::SYS_settimeofday,
        libc::SYS_clock_settime,
        libc::SYS_clock_adjtime,
        libc::SYS_sethostname,
        libc::SYS_setdomainname,
        libc::SYS_vhangup,
    ];
    for call in ways_out.into_iter().flat_map(numbers) {
        for first in [0, 1, u64::MAX] {
            assert_eq!(ask(call, first), REFUSED_FOR_GOOD, "{call} {first}");
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn ports_and_segments_of_the_processor_are_out_of_reach() {
    let calls = [libc::SYS_ioperm, libc::SYS_iopl, libc::SYS_modify_ldt];
    for call in calls.into_iter().flat_map(numbers) {
        assert_eq!(ask(call, 0), REFUSED_FOR_GOOD, "{call}");
    }
}

/// x32 has its own numbers, from 512 on, for calls whose arguments differ there.
#[cfg(target_arch = "x86_64")]
#[test]
fn refused_calls_have_no_second_number() {
    let (ptrace, kexec_load, process_vm_readv, process_vm_writev) = (521, 528, 539, 540);
    let calls = [ptrace, kexec_load, process_vm_readv, process_vm_writev];
    for call in calls.into_iter().flat_map(numbers) {
        assert_eq!(ask(call, 0), REFUSED_FOR_GOOD, "{call}");
    }
}

#[test]
fn processes_and_threads_can_be_made_and_namespaces_cannot() {
    // As C libraries make a thread, and a process.
    let ordinary = [
        0x3d_0f00,
        libc::SIGCHLD.unsigned_abs(),
        0x0100_4000 | libc::SIGCHLD.unsigned_abs(),
    ];
    let namespaces = [
        0x0002_0000, // mounts
        0x0200_0000, // control groups
        0x0400_0000, // names of the machine
        0x0800_0000, // messages
        0x1000_0000, // users
        0x2000_0000, // processes
        0x4000_0000, // the network
    ];
    for call in numbers(libc::SYS_clone) {
        for flags in ordinary.map(u64::from) {
            assert_eq!(ask(call, flags), Answer::Allowed, "{flags:#x}");
            for namespace in namespaces {
                for more in [0, 1 << 40] {
                    let flags = flags | namespace | more;
                    assert_eq!(ask(call, flags), REFUSED_FOR_GOOD, "{flags:#x}");
                }
            }
        }
    }
    // Its flags cannot be seen; this answer makes C libraries use the other one.
    for call in numbers(libc::SYS_clone3) {
        assert_eq!(ask(call, 0), Answer::Refused(libc::ENOSYS));
    }
}

#[test]
fn only_sockets_that_everybody_uses_can_be_opened() {
    let usual = [1, 2, 10, 16];
    for call in numbers(libc::SYS_socket) {
        for family in (0..=64_u64).chain([0xffff_ffff, 1 << 31]) {
            let expected = match usual.contains(&family) {
                true => Answer::Allowed,
                false => REFUSED_FOR_GOOD,
            };
            assert_eq!(ask(call, family), expected, "{family}");
        }
        // The kernel looks at 32 bits of it.
        assert_eq!(ask(call, 38 | 1 << 32), REFUSED_FOR_GOOD);
    }
}

#[test]
fn what_programs_do_every_day_is_allowed() {
    let everyday = [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_openat,
        libc::SYS_close,
        libc::SYS_mmap,
        libc::SYS_execve,
        libc::SYS_exit_group,
        libc::SYS_wait4,
        libc::SYS_kill,
        libc::SYS_futex,
        libc::SYS_pipe2,
        libc::SYS_connect,
        libc::SYS_sendto,
        libc::SYS_recvfrom,
        libc::SYS_socketpair,
        libc::SYS_clock_gettime,
        libc::SYS_nanosleep,
        libc::SYS_getrandom,
        libc::SYS_prctl,
        libc::SYS_fchmodat,
        libc::SYS_unlinkat,
    ];
    for call in everyday {
        assert_eq!(ask(call, 1), Answer::Allowed, "{call}");
    }
}

#[test]
fn calls_of_another_machine_are_the_end() {
    for machine in OTHER_MACHINES {
        for call in [0, libc::SYS_read, libc::SYS_unshare] {
            assert_eq!(ask_as(machine, call, 0), Answer::Killed);
        }
    }
}
