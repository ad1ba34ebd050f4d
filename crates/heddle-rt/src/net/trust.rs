//! Whom to believe: the certificates that servers are verified against.
//!
//! The system's roots always count. A destination may bring [`Roots`] of its own, which count for it alone. Verification is
//! on unless somebody says [`Roots::unverified`] for one destination, in so many words; clippy asks for a reason wherever
//! that is written.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::sync::OnceCell;

use super::rustls;

/// Settings kept for reuse, which also keeps their resumable sessions. Beyond that they are made anew.
const CONFIGS_MAX: usize = 256;

/// Certificates that count in addition to the system's. Cheap to clone, equal when the certificates are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Roots {
    extra: Arc<[CertificateDer<'static>]>,
    unverified: bool,
}

/// Text that does not hold certificates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRoots {
    #[error("the CA certificates are not PEM: {0}")]
    Pem(String),
    #[error("the CA certificates hold no certificate")]
    Empty,
    #[error("CA certificate {number} cannot be used: {reason}")]
    Certificate { number: usize, reason: String },
}

impl Roots {
    /// Believes every certificate. The connection is encrypted, to nobody knows whom: only for a destination whose owner
    /// asked for it.
    #[must_use]
    pub fn unverified() -> Self {
        Self {
            extra: Arc::default(),
            unverified: true,
        }
    }

    /// As what clients are verified against: these and no others.
    #[must_use]
    pub fn only(&self) -> RootCertStore {
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(self.extra.iter().cloned());
        store
    }

    /// Reads one or more certificates in PEM. Each is checked now, so that connecting later cannot fail for it.
    pub fn parse(pem: &str) -> Result<Self, BadRoots> {
        let extra: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(pem.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|error| BadRoots::Pem(error.to_string()))?;
        if extra.is_empty() {
            return Err(BadRoots::Empty);
        }
        let mut store = RootCertStore::empty();
        for (index, certificate) in extra.iter().enumerate() {
            let added = store.add(certificate.clone());
            added.map_err(|error| BadRoots::Certificate {
                number: index + 1,
                reason: error.to_string(),
            })?;
        }
        Ok(Self {
            extra: extra.into(),
            unverified: false,
        })
    }
}

/// Client settings, made once for each set of roots.
#[derive(Debug, Default)]
pub(super) struct Trust {
    /// Every connection shows its certificate anew: no session of an earlier one is taken up.
    pub(super) always_verified: bool,
    system: OnceCell<Arc<RootCertStore>>,
    configs: Mutex<HashMap<Roots, Arc<ClientConfig>>>,
}

impl Trust {
    /// The settings for a server that `roots` vouch for. They offer HTTP/2 and HTTP/1.1, in this order.
    pub(super) async fn client(&self, roots: &Roots) -> io::Result<Arc<ClientConfig>> {
        if let Some(config) = self.configs.lock().get(roots) {
            return Ok(config.clone());
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .expect("ring speaks the default versions");
        let builder = if roots.unverified {
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        } else {
            let mut store = RootCertStore::clone(&*self.system().await?);
            let (_, ignored) = store.add_parsable_certificates(roots.extra.iter().cloned());
            debug_assert_eq!(ignored, 0, "checked when they were read");
            builder.with_root_certificates(store)
        };
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        if self.always_verified {
            config.resumption = rustls::client::Resumption::disabled();
        }
        let config = Arc::new(config);
        let mut configs = self.configs.lock();
        if configs.len() >= CONFIGS_MAX {
            configs.clear();
        }
        let kept = configs.entry(roots.clone()).or_insert(config);
        Ok(kept.clone())
    }

    /// The system's roots, read once. They are files, so they are not read where other tasks wait.
    #[expect(
        clippy::disallowed_methods,
        reason = "awaited on the spot; a bundle of certificates is no place to inject faults"
    )]
    async fn system(&self) -> io::Result<Arc<RootCertStore>> {
        let load = || async {
            let loaded = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs).await;
            let loaded = loaded.map_err(io::Error::other)?;
            for error in &loaded.errors {
                tracing::warn!(%error, "cannot read some of the system's CA certificates");
            }
            let mut store = RootCertStore::empty();
            store.add_parsable_certificates(loaded.certs);
            Ok(Arc::new(store))
        };
        self.system.get_or_try_init(load).await.cloned()
    }
}

/// Believes every certificate; that its owner is at the other end is still checked.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _chain: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
