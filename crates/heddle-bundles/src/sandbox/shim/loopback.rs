//! The loopback device of a network namespace that was just made: it is there, and nobody has switched it on.
//!
//! The kernel is asked over netlink, because the older way, an `ioctl`, cannot be called from safe code.

use std::io;

use nix::libc;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

/// The protocol of devices and routes is number 0, the default.
const ROUTE: Option<Protocol> = None;

/// In every network namespace it is the first device.
const INDEX: i32 = 1;

/// Both the header of a message and what is said about a device have sixteen bytes.
const PART: usize = 16;

/// Switches the loopback device of this thread's network on.
pub(super) fn bring_up() -> io::Result<()> {
    let kernel = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        ROUTE,
    )?;
    send(&kernel, &request(), SendFlags::empty())?;
    let mut answer = [0; 4 * PART];
    let (read, _) = recv(&kernel, &mut answer, RecvFlags::empty())?;
    match answer.get(PART..PART + 4).filter(|_| read >= PART + 4) {
        Some(&[a, b, c, d]) => match i32::from_ne_bytes([a, b, c, d]) {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(-error)),
        },
        _ => Err(io::Error::other("the kernel's answer is too short")),
    }
}

/// `RTM_NEWLINK` with the flag "up" for the device, to be acknowledged.
fn request() -> Vec<u8> {
    let up = libc::IFF_UP.cast_unsigned();
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
    let mut message = Vec::with_capacity(2 * PART);
    message.extend((2 * PART as u32).to_ne_bytes());
    message.extend(libc::RTM_NEWLINK.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    // A number of ours, and the port of the sender: neither is needed for one question.
    message.extend([0; 8]);
    // No family, no type.
    message.extend([0; 4]);
    message.extend(INDEX.to_ne_bytes());
    message.extend(up.to_ne_bytes());
    message.extend(up.to_ne_bytes());
    message
}
