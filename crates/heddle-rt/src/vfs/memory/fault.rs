//! What can go wrong with an operation of the disk in memory, and the error a program is told of it.

use std::io;

/// What goes wrong with one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The device fails. A failed sync also forgets what it should have made safe, as Linux does:
    /// the next sync succeeds and says nothing about it.
    Eio,
    /// The device fails after it did the work, as one that is unplugged before it could answer. Only a sync tells it from
    /// [`Fault::Eio`]: what it should have made safe is.
    EioAfter,
    /// No room.
    Enospc,
    /// No room within a quota.
    Edquot,
    /// No descriptors left to this process. Only what needs one fails.
    Emfile,
    /// No descriptors left on the machine. Only what needs one fails.
    Enfile,
    Enomem,
    Eintr,
}

impl Fault {
    pub(super) fn is_of_descriptors(self) -> bool {
        matches!(self, Self::Emfile | Self::Enfile)
    }

    pub(super) fn error(self) -> io::Error {
        use rustix::io::Errno;
        let number = match self {
            Self::Eio | Self::EioAfter => Errno::IO,
            Self::Enospc => Errno::NOSPC,
            Self::Edquot => Errno::DQUOT,
            Self::Emfile => Errno::MFILE,
            Self::Enfile => Errno::NFILE,
            Self::Enomem => Errno::NOMEM,
            Self::Eintr => Errno::INTR,
        };
        io::Error::from_raw_os_error(number.raw_os_error())
    }
}
