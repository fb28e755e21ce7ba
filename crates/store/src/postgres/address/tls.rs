//! What is trusted of the database's certificate.

use std::{path::Path, sync::Arc};

use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};

use super::AddressError;

/// Encrypted, whoever is at the other end.
pub(super) fn encrypted() -> ClientConfig {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(Anybody(Arc::clone(&provider)));
    builder(provider).dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
}

/// The other end shows a certificate for its name, by somebody whom we trust.
pub(super) fn verified(roots: Option<&Path>) -> Result<ClientConfig, AddressError> {
    let trusted = match roots {
        Some(file) => from_file(file)?,
        None => from_machine()?,
    };
    let provider = Arc::new(ring::default_provider());
    Ok(builder(provider).with_root_certificates(trusted).with_no_client_auth())
}

fn builder(
    provider: Arc<CryptoProvider>,
) -> rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier> {
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider knows the protocol's versions")
}

fn from_file(file: &Path) -> Result<RootCertStore, AddressError> {
    let unreadable = |source: Box<dyn std::error::Error + Send + Sync>| {
        AddressError::Certificates { from: file.display().to_string(), source }
    };
    let mut store = RootCertStore::empty();
    let certificates =
        CertificateDer::pem_file_iter(file).map_err(|error| unreadable(error.into()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| unreadable(error.into()))?;
        store.add(certificate).map_err(|error| unreadable(error.into()))?;
    }
    if store.is_empty() {
        return Err(unreadable("there is none in it".into()));
    }
    Ok(store)
}

fn from_machine() -> Result<RootCertStore, AddressError> {
    let mut store = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    store.add_parsable_certificates(found.certs);
    if store.is_empty() {
        let source = found.errors.into_iter().next();
        let source = source.map_or_else(|| "there are none".into(), Into::into);
        return Err(AddressError::Certificates { from: "the machine".to_owned(), source });
    }
    Ok(store)
}

/// Trusts any certificate: what `sslmode=require` means, and no more.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
