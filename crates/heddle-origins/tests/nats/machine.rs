//! Servers, started and killed, and how they are asked.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use heddle_origins::{Credentials, NatsDeps, NatsServer, NatsTimeouts};
use heddle_rt::net::dial::{Network, Place};
use heddle_rt::net::egress::Egress;
use heddle_rt::{Chance, Clock, Tasks};
use tempfile::TempDir;

/// The program that a variable names.
pub(crate) fn program(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable);
    let path =
        PathBuf::from(path.unwrap_or_else(|| panic!("{variable} must be the path of a program")));
    assert!(path.is_file(), "{variable}: there is no {}", path.display());
    path
}

/// A server that keeps its files in a directory of its own.
pub(crate) struct Machine {
    child: Option<Child>,
    dir: TempDir,
    program: PathBuf,
    arguments: fn(&Self) -> Vec<String>,
    /// What it says once it can be asked.
    ready: &'static str,
    pub(crate) port: u16,
    pub(crate) monitor_port: u16,
}

/// Free now; whoever takes it in between makes the start fail loudly.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

impl Machine {
    pub(crate) async fn start(
        variable: &str,
        ready: &'static str,
        arguments: fn(&Self) -> Vec<String>,
    ) -> Self {
        let mut machine = Self {
            child: None,
            dir: TempDir::new().unwrap(),
            program: program(variable),
            arguments,
            ready,
            port: free_port(),
            monitor_port: free_port(),
        };
        machine.run().await;
        machine
    }

    pub(crate) fn dir(&self) -> String {
        self.dir.path().to_str().unwrap().to_owned()
    }

    /// Starts it, and waits until it can be asked.
    pub(crate) async fn run(&mut self) {
        let arguments = (self.arguments)(self);
        let log = std::fs::File::create(self.dir.path().join("log")).unwrap();
        let child = Command::new(&self.program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        self.child = Some(child.unwrap());
        loop {
            let log = std::fs::read_to_string(self.dir.path().join("log")).unwrap();
            if log.contains(self.ready) {
                return;
            }
            let ended = self.child.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "the server ended: {ended:?}\n{log}");
            Clock::system().sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(crate) fn server(&self) -> NatsServer {
        NatsServer {
            place: place(self.port),
            credentials: Credentials::Nobody,
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) fn place(port: u16) -> Place {
    Place {
        host: "127.0.0.1".to_owned(),
        port,
        tls: None,
    }
}

pub(crate) fn deps() -> NatsDeps {
    let clock = Clock::system();
    NatsDeps {
        tasks: Tasks::new("test"),
        chance: Chance::system(),
        connect: Arc::new(Network::new(clock.clone(), Egress::ANYWHERE)),
        patience: NatsTimeouts::default(),
        clock,
    }
}
