//! How a command can fail, grouped by what the person or script can do next.
//!
//! Each group has an exit code of its own; they are documented in `heddle --help` and do not
//! change meaning. Everything that is not a [`Failure`] exits with 1.

use http::StatusCode;
use kube::core::Status;

/// The exit codes, as `heddle --help` shows them.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed (the message says why)
  2  the command line or the configuration is wrong
  3  not found
  4  conflict: somebody else changed or owns it
  5  refused: credentials or permissions
  6  no server: nothing answers at the address
  7  timed out while waiting";

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Change the command line or the configuration.
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    NotFound(String),
    /// Read again, or force.
    #[error("{0}")]
    Conflict(String),
    /// Use other credentials.
    #[error("{0}")]
    Refused(String),
    /// Start the server, or name another one.
    #[error("{0}")]
    Unreachable(String),
    #[error("{0}")]
    TimedOut(String),
    /// The server understood and said no.
    #[error("{0}")]
    Rejected(String),
}

impl Failure {
    /// What the server said about `object`, in the server's words.
    pub fn from_status(object: &str, code: StatusCode, status: &Status) -> Self {
        let mut text = if status.message.is_empty() {
            format!("{object}: the server answered {code}")
        } else if status.message.contains(object) {
            status.message.clone()
        } else {
            format!("{object}: {}", status.message)
        };
        match code {
            StatusCode::NOT_FOUND => Self::NotFound(text),
            StatusCode::CONFLICT => Self::Conflict(text),
            StatusCode::UNAUTHORIZED => {
                text.push_str("; the token in the kubeconfig is not the one this server made");
                Self::Refused(text)
            }
            StatusCode::FORBIDDEN => Self::Refused(text),
            _ => Self::Rejected(text),
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::Rejected(_) => 1,
            Self::Usage(_) => 2,
            Self::NotFound(_) => 3,
            Self::Conflict(_) => 4,
            Self::Refused(_) => 5,
            Self::Unreachable(_) => 6,
            Self::TimedOut(_) => 7,
        }
    }
}

/// The exit code for an error, whatever context was put around it.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Failure>())
        .map_or(1, Failure::exit_code)
}

/// Whether the reader of our output went away (`heddle get … | head`): not worth a word.
pub fn reader_left(error: &anyhow::Error) -> bool {
    let broken = |cause: &std::io::Error| cause.kind() == std::io::ErrorKind::BrokenPipe;
    error
        .chain()
        .any(|cause| cause.downcast_ref::<std::io::Error>().is_some_and(broken))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(message: &str) -> Status {
        Status::failure(message, "")
    }

    #[test]
    fn the_exit_code_survives_context() {
        let failure = Failure::from_status(
            "trigger/orders",
            StatusCode::NOT_FOUND,
            &status("trigger/orders not found"),
        );
        let error = anyhow::Error::new(failure).context("while applying orders.yaml");
        assert_eq!(exit_code(&error), 3);
        assert_eq!(exit_code(&anyhow::anyhow!("anything else")), 1);
    }

    #[test]
    fn a_message_always_names_the_object() {
        let failure = Failure::from_status(
            "trigger/orders",
            StatusCode::CONFLICT,
            &status("the object has been modified"),
        );
        assert_eq!(
            failure.to_string(),
            "trigger/orders: the object has been modified"
        );
        let silent = Failure::from_status("trigger/orders", StatusCode::BAD_GATEWAY, &status(""));
        assert_eq!(
            silent.to_string(),
            "trigger/orders: the server answered 502 Bad Gateway"
        );
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let broken = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        assert!(reader_left(
            &anyhow::Error::new(broken).context("cannot print")
        ));
        assert!(!reader_left(&anyhow::anyhow!("no")));
    }
}
