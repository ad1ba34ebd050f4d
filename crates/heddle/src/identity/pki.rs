//! The certificate authority of a data directory, and the certificates it issues to the listener.
//!
//! The authority is made once and trusted through the kubeconfig. Server certificates live in
//! memory: one is issued for the first handshake and another when it nears its end, so a server
//! that runs for years never presents an expired one, and no timer is needed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use heddle_rt::Clock;
use heddle_rt::net::rustls;
use heddle_rt::net::trust::Roots;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use parking_lot::Mutex;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;

use super::{IdentityDeps, PUBLIC, SECRET, read};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The authority outlives the installation; clients hold it in their kubeconfig.
const AUTHORITY_LIFE: Duration = DAY.saturating_mul(20 * 365);
/// Some clients refuse server certificates that are good for longer than 398 days.
const SERVER_LIFE: Duration = DAY.saturating_mul(365);
const SERVER_RENEW_BEFORE: Duration = DAY.saturating_mul(30);
/// Clocks of clients may be behind ours.
const CLOCK_SKEW: Duration = DAY;

/// A key that may sign, and the certificate that says so.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate_pem: String,
}

impl Authority {
    /// Reads the authority from `dir`, or makes it when one of its files is missing.
    pub(super) fn open(deps: &IdentityDeps, dir: &Path) -> anyhow::Result<Self> {
        let (key_path, certificate_path) = (dir.join("ca.key"), dir.join("ca.crt"));
        if let (Some(key), Some(certificate_pem)) =
            (read(deps, &key_path)?, read(deps, &certificate_path)?)
        {
            let key = KeyPair::from_pem(&key)
                .with_context(|| format!("cannot use {}", key_path.display()))?;
            let issuer = Issuer::new(authority_params(&key, Timestamp::UNIX_EPOCH)?, key);
            return Ok(Self {
                issuer,
                certificate_pem,
            });
        }
        let key = KeyPair::generate().context("cannot make a key")?;
        let params = authority_params(&key, deps.clock.now())?;
        let certificate_pem = params
            .self_signed(&key)
            .context("cannot sign the authority's certificate")?
            .pem();
        deps.vfs
            .create_dir_all(dir)
            .with_context(|| format!("cannot create {}", dir.display()))?;
        // The key first: a certificate without its key is useless, a key without one is replaced.
        let write = |path: &Path, text: &str, mode| {
            deps.vfs
                .write_atomic(path, text.as_bytes(), mode)
                .with_context(|| format!("cannot write {}", path.display()))
        };
        write(&key_path, &key.serialize_pem(), SECRET)?;
        write(&certificate_path, &certificate_pem, PUBLIC)?;
        Ok(Self {
            issuer: Issuer::new(params, key),
            certificate_pem,
        })
    }

    pub(super) fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// A certificate for `names` with a key of its own.
    fn issue(&self, names: &[String], now: Timestamp) -> anyhow::Result<CertifiedKey> {
        let key = KeyPair::generate().context("cannot make a key")?;
        let mut params =
            CertificateParams::new(names).context("cannot put these names into a certificate")?;
        params.distinguished_name = common_name("heddle");
        set_validity(&mut params, now, SERVER_LIFE)?;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params
            .signed_by(&key, &self.issuer)
            .context("cannot sign the server's certificate")?;
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let signing = rustls::crypto::ring::sign::any_supported_type(&private)
            .context("cannot use the server's key")?;
        Ok(CertifiedKey::new(vec![certificate.der().clone()], signing))
    }
}

/// The same for every open: only the key makes the authority what it is.
fn authority_params(key: &KeyPair, now: Timestamp) -> anyhow::Result<CertificateParams> {
    let mut params = CertificateParams::default();
    // Two installations must not have authorities of one name: some trust stores look up by name.
    let fingerprint: String = params
        .key_identifier(key)
        .iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    params.distinguished_name = common_name(&format!("heddle authority {fingerprint}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    set_validity(&mut params, now, AUTHORITY_LIFE)?;
    Ok(params)
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

/// Makes a certificate good from a little before `now`. They count in days, which is precise enough.
fn set_validity(
    params: &mut CertificateParams,
    now: Timestamp,
    life: Duration,
) -> anyhow::Result<()> {
    let day = |time: Timestamp| {
        let date = time.to_zoned(TimeZone::UTC).date();
        rcgen::date_time_ymd(
            date.year().into(),
            date.month().unsigned_abs(),
            date.day().unsigned_abs(),
        )
    };
    params.not_before = day(now
        .checked_sub(CLOCK_SKEW)
        .context("the clock is out of range")?);
    params.not_after = day(now.checked_add(life).context("the clock is out of range")?);
    Ok(())
}

/// TLS as the listener speaks it: HTTP/2 and HTTP/1.1, a certificate from `authority`. Clients may show a certificate of
/// theirs if it is known whom to believe, and need not.
pub(super) fn server_config(
    authority: Arc<Authority>,
    clock: Clock,
    names: Vec<String>,
    clients: Option<&Roots>,
) -> anyhow::Result<Arc<rustls::ServerConfig>> {
    let first = Issued::new(&authority, &names, clock.now())?;
    let renewing = Renewing {
        authority,
        clock,
        names,
        current: Mutex::new(first),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .context("cannot set up TLS")?;
    let config = match clients {
        None => config.with_no_client_auth(),
        Some(roots) => {
            let roots = Arc::new(roots.only());
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                .allow_unauthenticated()
                .build()
                .context("cannot verify clients")?;
            config.with_client_cert_verifier(verifier)
        }
    };
    let mut config = config.with_cert_resolver(Arc::new(renewing));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// A certificate in use.
#[derive(Debug)]
struct Issued {
    key: Arc<CertifiedKey>,
    renew_at: Timestamp,
}

impl Issued {
    fn new(authority: &Authority, names: &[String], now: Timestamp) -> anyhow::Result<Self> {
        let key = Arc::new(authority.issue(names, now)?);
        let renew_at = now
            .checked_add(SERVER_LIFE - SERVER_RENEW_BEFORE)
            .context("the clock is out of range")?;
        Ok(Self { key, renew_at })
    }
}

/// Hands out the current certificate and replaces it in time.
#[derive(Debug)]
struct Renewing {
    authority: Arc<Authority>,
    clock: Clock,
    names: Vec<String>,
    current: Mutex<Issued>,
}

impl ResolvesServerCert for Renewing {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

impl Renewing {
    fn current(&self) -> Arc<CertifiedKey> {
        let now = self.clock.now();
        let mut current = self.current.lock();
        if now >= current.renew_at {
            match Issued::new(&self.authority, &self.names, now) {
                Ok(renewed) => *current = renewed,
                // The old one is good for another month, and the next handshake tries again.
                Err(error) => tracing::error!(
                    error = format!("{error:#}"),
                    "cannot renew the server certificate"
                ),
            }
        }
        current.key.clone()
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authority")
    }
}

#[cfg(test)]
mod tests {
    use heddle_rt::{Chance, MemoryVfs};

    use super::*;

    fn renewing(clock: &Clock) -> Renewing {
        let deps = IdentityDeps {
            vfs: Arc::new(MemoryVfs::new()),
            clock: clock.clone(),
            chance: Chance::seeded(1),
        };
        let authority = Arc::new(Authority::open(&deps, Path::new("pki")).unwrap());
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let current = Mutex::new(Issued::new(&authority, &names, clock.now()).unwrap());
        Renewing {
            authority,
            clock: clock.clone(),
            names,
            current,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_certificate_is_replaced_a_month_before_it_ends_and_not_sooner() {
        let clock = Clock::simulated("2026-01-01T00:00:00Z".parse().unwrap());
        let renewing = renewing(&clock);
        let first = renewing.current();
        clock.sleep(SERVER_LIFE - SERVER_RENEW_BEFORE - DAY).await;
        assert!(Arc::ptr_eq(&first, &renewing.current()));
        clock.sleep(DAY).await;
        let second = renewing.current();
        assert_ne!(first.cert, second.cert);
        assert!(Arc::ptr_eq(&second, &renewing.current()));
    }
}
