//! Who this server is and who may use it: keys and credentials, made once and kept.
//!
//! ```text
//!   <data dir>/pki/ca.key          0600   made once
//!              pki/ca.crt          0644   made once
//!              admin.kubeconfig    0600   made once; its address follows the listener
//!              osb-credentials.json 0600  made once
//!              metrics-token       0600   made once
//!              endpoints.json      0644   written when ready, removed at the next start
//! ```
//! The server's own certificate is not among them: the authority issues one at every start, and
//! again before it expires, so there is no second key to protect. Deleting a credentials file and
//! restarting makes a new credential. Everything is written whole or not at all.

mod kubeconfig;
mod pki;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use heddle_rt::net::rustls;
use heddle_rt::net::trust::Roots;
use heddle_rt::{Chance, Clock, Vfs};
use serde_json::json;

use crate::config::is_loopback;
use crate::{osb, output};

const KUBECONFIG: &str = "admin.kubeconfig";
const OSB_CREDENTIALS: &str = "osb-credentials.json";
const METRICS_TOKEN: &str = "metrics-token";
const ENDPOINTS: &str = "endpoints.json";

/// Readable by the owner only.
const SECRET: u32 = 0o600;
const PUBLIC: u32 = 0o644;

/// 256 bits: nobody guesses that.
const TOKEN_BYTES: usize = 32;

/// What identity needs from the world.
#[derive(Clone, Debug)]
pub(crate) struct IdentityDeps {
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) clock: Clock,
    pub(crate) chance: Chance,
}

/// The keys and credentials of one data directory.
#[derive(Debug)]
pub(crate) struct Identity {
    deps: IdentityDeps,
    dir: PathBuf,
    authority: Arc<pki::Authority>,
    admin_token: String,
    metrics_token: String,
}

impl Identity {
    /// Reads what is there and makes what is missing. The caller holds the directory's lock.
    pub(crate) fn open(deps: IdentityDeps, dir: &Path) -> anyhow::Result<Self> {
        let authority = Arc::new(pki::Authority::open(&deps, &dir.join("pki"))?);
        let known = read(&deps, &dir.join(KUBECONFIG))?.map(|text| kubeconfig::token(&text));
        let admin_token = match known {
            Some(Ok(token)) => token,
            Some(Err(reason)) => {
                bail!(
                    "cannot use {}: {reason}; remove it to have a new one made",
                    dir.join(KUBECONFIG).display()
                )
            }
            None => deps.chance.token(TOKEN_BYTES),
        };
        let metrics_token = metrics_token(&deps, dir)?;
        let identity = Self {
            deps,
            dir: dir.to_path_buf(),
            authority,
            admin_token,
            metrics_token,
        };
        identity.withdraw()?;
        identity.make_osb_credentials()?;
        Ok(identity)
    }

    /// The bearer token of the administrator.
    pub(crate) fn admin_token(&self) -> &str {
        &self.admin_token
    }

    /// The bearer token of whoever collects metrics, good for nothing else.
    pub(crate) fn metrics_token(&self) -> &str {
        &self.metrics_token
    }

    /// The certificate of whoever signs ours, in PEM.
    pub(crate) fn ca_pem(&self) -> &str {
        self.authority.certificate_pem()
    }

    /// What the listener speaks TLS with. `names` are added to localhost and the address itself; with `clients`, whoever
    /// connects may prove who they are by a certificate of these authorities.
    pub(crate) fn tls(
        &self,
        listen: SocketAddr,
        names: &[String],
        clients: Option<&Roots>,
    ) -> anyhow::Result<Arc<rustls::ServerConfig>> {
        let mut sans: Vec<String> = vec!["localhost".to_owned()];
        let own = [
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::LOCALHOST),
            listen.ip(),
        ];
        sans.extend(
            own.iter()
                .filter(|ip| !ip.is_unspecified())
                .map(ToString::to_string),
        );
        sans.extend(names.iter().cloned());
        sans.sort();
        sans.dedup();
        let (authority, clock) = (self.authority.clone(), self.deps.clock.clone());
        pki::server_config(authority, clock, sans, clients)
    }

    /// Tells clients where to go: called when requests are being answered, and not before.
    pub(crate) fn publish(
        &self,
        listener: SocketAddr,
        events: SocketAddr,
    ) -> anyhow::Result<Published> {
        let secure = format!("https://{}", reachable(listener));
        let (control, events) = (url(listener), url(events));
        let kubeconfig = self.dir.join(KUBECONFIG);
        let before = read(&self.deps, &kubeconfig)?;
        let access = kubeconfig::AdminAccess {
            server: &secure,
            ca_pem: self.authority.certificate_pem(),
            token: &self.admin_token,
        };
        let after = kubeconfig::write(before.as_deref(), &access)
            .map_err(|reason| anyhow::anyhow!("cannot use {}: {reason}", kubeconfig.display()))?;
        if before.as_deref() != Some(after.as_str()) {
            self.write(KUBECONFIG, &after, SECRET)?;
        }
        self.write(
            ENDPOINTS,
            &output::json(&json!({"control": control, "events": events})),
            PUBLIC,
        )?;
        let kubeconfig = std::path::absolute(&kubeconfig).unwrap_or(kubeconfig);
        Ok(Published {
            control,
            events,
            kubeconfig,
        })
    }

    /// An address from an earlier run would send clients to whoever has that port now.
    fn withdraw(&self) -> anyhow::Result<()> {
        let path = self.dir.join(ENDPOINTS);
        match self.deps.vfs.remove(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", path.display()))
            }
            _ => Ok(()),
        }
    }

    /// Where platforms' credentials are kept.
    pub(crate) fn osb_credentials(&self) -> PathBuf {
        self.dir.join(OSB_CREDENTIALS)
    }

    fn make_osb_credentials(&self) -> anyhow::Result<()> {
        let path = self.osb_credentials();
        let Some(text) = read(&self.deps, &path)? else {
            let password = self.deps.chance.token(TOKEN_BYTES);
            return self.write(
                OSB_CREDENTIALS,
                &output::json(&json!({"username": "heddle", "password": password})),
                SECRET,
            );
        };
        if osb::parse(text.as_bytes()).is_none() {
            bail!(
                "{} holds no username and password, nor a list of them; remove it to have new ones made",
                path.display()
            );
        }
        Ok(())
    }

    fn write(&self, name: &str, text: &str, mode: u32) -> anyhow::Result<()> {
        let path = self.dir.join(name);
        self.deps
            .vfs
            .write_atomic(&path, text.as_bytes(), mode)
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Reads the token of whoever collects metrics, or makes one. A file without one would let everybody in who sends none.
fn metrics_token(deps: &IdentityDeps, dir: &Path) -> anyhow::Result<String> {
    let path = dir.join(METRICS_TOKEN);
    let Some(text) = read(deps, &path)? else {
        let token = deps.chance.token(TOKEN_BYTES);
        let written = deps
            .vfs
            .write_atomic(&path, format!("{token}\n").as_bytes(), SECRET);
        written.with_context(|| format!("cannot write {}", path.display()))?;
        return Ok(token);
    };
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!(
            "{} holds no token; remove it to have a new one made",
            path.display()
        );
    }
    Ok(token.to_owned())
}

/// Where clients find us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) control: String,
    pub(crate) events: String,
    pub(crate) kubeconfig: PathBuf,
}

/// The text of a file, or nothing when it does not exist.
fn read(deps: &IdentityDeps, path: &Path) -> anyhow::Result<Option<String>> {
    match deps.vfs.read(path) {
        Ok(bytes) => {
            Ok(Some(String::from_utf8(bytes).with_context(|| {
                format!("{} is not text", path.display())
            })?))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// What clients on this machine use: plain on loopback, where no certificate is needed.
fn url(listener: SocketAddr) -> String {
    let scheme = if is_loopback(listener.ip()) {
        "http"
    } else {
        "https"
    };
    format!("{scheme}://{}", reachable(listener))
}

/// The address a client on this machine can use: `0.0.0.0` is no destination.
fn reachable(listener: SocketAddr) -> SocketAddr {
    let ip = match listener.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listener.port())
}

#[cfg(test)]
mod tests;
