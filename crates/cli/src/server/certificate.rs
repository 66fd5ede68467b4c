//! The certificate of the server, made on this machine and kept, so that a phone has to trust it once.
//!
//! Browsers give WebGPU to pages that came by HTTPS, or from their own machine. No authority signs for addresses such
//! as 192.168.0.2, so we are one ourselves: a self-signed certificate that phones are told to trust, and one signed by
//! it with the addresses of today. When addresses change, only the second is made anew.
//!
//! Whoever trusts the first should not have to trust us with the whole web: it says of itself that it may only vouch
//! for localhost, for names in `.local`, for private addresses, and for what else this machine itself is called.

use std::{
    collections::BTreeSet,
    fs, io,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DnType, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, NameConstraints, date_time_ymd,
};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

const DAY: u64 = 86_400;

/// How long the authority is good for: longer than a phone is.
const AUTHORITY_DAYS: u64 = 3650;

/// How long the server's own certificate is good for: browsers refuse more than 398 days.
const SERVER_DAYS: u64 = 397;

/// A certificate this close to its end is made anew.
const MARGIN_DAYS: u64 = 30;

/// Addresses of other networks that are remembered, so that going back there changes nothing.
const MOST_NAMES: usize = 32;

/// What the authority may vouch for: networks that belong to nobody in particular.
const PRIVATE_NETWORKS: [(&str, u8); 9] = [
    ("127.0.0.0", 8),
    ("10.0.0.0", 8),
    ("172.16.0.0", 12),
    ("192.168.0.0", 16),
    ("169.254.0.0", 16),
    ("100.64.0.0", 10),
    ("::1", 128),
    ("fc00::", 7),
    ("fe80::", 10),
];

/// What the server shows to its clients.
#[derive(Serialize, Deserialize)]
pub(crate) struct Certificate {
    authority: Pair,
    /// Addresses of this machine that are not private, for which the authority may vouch all the same.
    public: BTreeSet<IpAddr>,
    server: Pair,
    /// For which names and addresses the server's certificate is good.
    names: BTreeSet<String>,
    /// When the server's certificate ends, in seconds since 1970.
    expires: u64,
}

/// A certificate and its private key, in PEM.
#[derive(Serialize, Deserialize)]
struct Pair {
    certificate: String,
    key: String,
}

/// Where this user's programs keep what they need again.
pub(crate) fn folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = std::env::home_dir();
    let data = if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        home.map(|home| home.join("Library/Application Support"))
    } else {
        variable("XDG_DATA_HOME").or_else(|| home.map(|home| home.join(".local/share")))
    };
    data.map(|data| data.join("rullama"))
}

impl Certificate {
    /// The certificate in `folder`, if it is still good for these addresses; else a new one, which is kept there.
    pub(crate) fn load_or_make(folder: &Path, addresses: &[IpAddr]) -> Result<Self, Failure> {
        let path = folder.join("certificate.json");
        let problem = |what: &str| Failure::new(format!("the certificate `{}` {what}", path.display()));
        let kept: Option<Self> = match fs::read(&path) {
            Ok(bytes) => Some(serde_json::from_slice(&bytes).map_err(|error| {
                let hint = "delete it, and a new one is made, which phones have to trust anew";
                problem("is damaged").caused_by(error).hint(hint)
            })?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(problem("cannot be read").caused_by(error)),
        };
        let mut names: BTreeSet<String> = addresses.iter().map(IpAddr::to_string).collect();
        names.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
        let mut public: BTreeSet<IpAddr> =
            addresses.iter().copied().filter(|address| !is_private(*address)).collect();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let mut authority = None;
        if let Some(kept) = kept {
            if names.is_subset(&kept.names) && kept.expires > now + MARGIN_DAYS * DAY {
                return Ok(kept);
            }
            // What an authority may vouch for is part of it.
            if public.is_subset(&kept.public) {
                authority = Some(kept.authority);
            }
            public.extend(kept.public);
            for name in kept.names {
                if names.len() < MOST_NAMES {
                    names.insert(name);
                }
            }
        }
        let made = make(authority, public, names, now)
            .map_err(|error| Failure::new("the certificate cannot be made").caused_by(error))?;
        made.keep(&path).map_err(|error| {
            problem("cannot be written").caused_by(error).hint("--certificate names another folder")
        })?;
        Ok(made)
    }

    /// Writes the file whole, for its owner only: it holds the private keys.
    fn keep(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let new = path.with_extension(format!("{}.new", std::process::id()));
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        io::Write::write_all(&mut options.open(&new)?, serde_json::to_string_pretty(self)?.as_bytes())?;
        fs::rename(new, path)
    }

    /// The certificate that phones are told to trust.
    pub(crate) fn authority(&self) -> Result<Vec<u8>, Failure> {
        Ok(certificate_der(&self.authority.certificate)?.to_vec())
    }

    /// TLS as the server speaks it.
    pub(crate) fn tls(&self) -> Result<Arc<ServerConfig>, Failure> {
        let chain =
            vec![certificate_der(&self.server.certificate)?, certificate_der(&self.authority.certificate)?];
        let key = PrivateKeyDer::from_pem_slice(self.server.key.as_bytes()).map_err(unusable)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(unusable)?.with_no_client_auth().with_single_cert(chain, key);
        let mut config = config.map_err(unusable)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

fn certificate_der(pem: &str) -> Result<CertificateDer<'static>, Failure> {
    CertificateDer::from_pem_slice(pem.as_bytes()).map_err(unusable)
}

fn unusable(error: impl std::error::Error + Send + Sync + 'static) -> Failure {
    Failure::new("the certificate cannot be used").caused_by(error).hint("delete it, and a new one is made")
}

/// Makes the server's certificate, and an authority to sign it unless there is one.
fn make(
    authority: Option<Pair>,
    public: BTreeSet<IpAddr>,
    names: BTreeSet<String>,
    now: u64,
) -> Result<Certificate, rcgen::Error> {
    let authority = match authority {
        Some(authority) => authority,
        None => {
            let key = KeyPair::generate()?;
            let certificate = authority_params(&public, now).self_signed(&key)?.pem();
            Pair { certificate, key: key.serialize_pem() }
        }
    };
    // Of the authority's certificate, a signature needs but what is the same in all of them.
    let issuer = Issuer::new(authority_params(&public, now), KeyPair::from_pem(&authority.key)?);
    let mut params = CertificateParams::new(names.iter().cloned().collect::<Vec<_>>())?;
    params.distinguished_name.push(DnType::CommonName, "rullama");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    last(&mut params, now, SERVER_DAYS);
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer)?.pem();
    let server = Pair { certificate, key: key.serialize_pem() };
    Ok(Certificate { authority, public, server, names, expires: now + SERVER_DAYS * DAY - DAY })
}

fn authority_params(public: &BTreeSet<IpAddr>, now: u64) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "rullama on a private network");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let names = ["localhost", "local"].map(|name| GeneralSubtree::DnsName(name.to_owned()));
    let own = public.iter().map(|address| (*address, if address.is_ipv4() { 32 } else { 128 }));
    let networks = networks().chain(own);
    let networks = networks.map(|(address, bits)| CidrSubnet::from_addr_prefix(address, bits));
    let networks = networks.map(GeneralSubtree::IpAddress);
    params.name_constraints = Some(NameConstraints {
        permitted_subtrees: names.into_iter().chain(networks).collect(),
        excluded_subtrees: vec![],
    });
    last(&mut params, now, AUTHORITY_DAYS);
    params
}

/// Makes a certificate good from yesterday, because clocks differ, for so many days.
fn last(params: &mut CertificateParams, now: u64, days: u64) {
    let start = date_time_ymd(1970, 1, 1) + Duration::from_secs(now - DAY);
    params.not_before = start;
    params.not_after = start + Duration::from_secs(days * DAY);
}

fn networks() -> impl Iterator<Item = (IpAddr, u8)> {
    PRIVATE_NETWORKS.into_iter().filter_map(|(address, bits)| Some((address.parse().ok()?, bits)))
}

/// Whether the authority may vouch for an address.
fn is_private(address: IpAddr) -> bool {
    networks().any(|(network, bits)| match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            (network.to_bits() ^ address.to_bits()) >> (32 - bits) == 0
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            (network.to_bits() ^ address.to_bits()) >> (128 - bits) == 0
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(list: &[&str]) -> Vec<IpAddr> {
        list.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn private_addresses_are_told_from_public_ones() {
        for address in
            addresses(&["127.0.0.1", "10.1.2.3", "172.31.0.1", "192.168.178.20", "::1", "fd00::1", "fe80::1"])
        {
            assert!(is_private(address), "{address}");
        }
        for address in addresses(&["8.8.8.8", "172.32.0.1", "192.169.0.1", "::2", "2001:db8::1"]) {
            assert!(!is_private(address), "{address}");
        }
    }

    /// A new address makes a new certificate, signed by the same authority and still good for the old address.
    #[test]
    fn addresses_are_added_and_the_authority_stays() {
        let folder = tempfile::tempdir().unwrap();
        let load = |list: &[&str]| Certificate::load_or_make(folder.path(), &addresses(list)).ok().unwrap();
        let first = load(&["192.168.0.2"]);
        assert!(first.names.contains("192.168.0.2") && first.public.is_empty());
        assert_eq!(load(&["192.168.0.2"]).server.certificate, first.server.certificate);
        assert_eq!(load(&[]).server.certificate, first.server.certificate);

        let second = load(&["10.0.0.7"]);
        assert_ne!(second.server.certificate, first.server.certificate);
        assert_eq!(second.authority.certificate, first.authority.certificate);
        assert!(second.names.contains("192.168.0.2"));
        assert_eq!(load(&["192.168.0.2"]).server.certificate, second.server.certificate);
        assert!(second.tls().is_ok());
    }

    /// An authority cannot vouch for an address that it was not made for.
    #[test]
    fn a_public_address_makes_a_new_authority() {
        let folder = tempfile::tempdir().unwrap();
        let load = |list: &[&str]| Certificate::load_or_make(folder.path(), &addresses(list)).ok().unwrap();
        let first = load(&[]);
        let second = load(&["203.0.113.9"]);
        assert_ne!(second.authority.certificate, first.authority.certificate);
        assert!(second.names.contains("203.0.113.9"));
        let third = load(&["10.0.0.7"]);
        assert_eq!(third.authority.certificate, second.authority.certificate);
        assert!(third.names.contains("203.0.113.9"));
    }

    #[test]
    fn a_certificate_near_its_end_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let load = || Certificate::load_or_make(folder.path(), &[]).ok().unwrap();
        let mut old = load();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        old.expires = now + (MARGIN_DAYS - 1) * DAY;
        old.keep(&folder.path().join("certificate.json")).unwrap();
        let new = load();
        assert_ne!(new.server.certificate, old.server.certificate);
        assert!(new.expires > old.expires);
        assert_eq!(new.authority.certificate, old.authority.certificate);
    }

    #[test]
    fn a_damaged_file_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("certificate.json");
        fs::write(&path, "{").unwrap();
        assert!(Certificate::load_or_make(folder.path(), &[]).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "{");
    }
}
