//! The server's certificate. It is made on this machine and kept, so that a phone has to trust it only once a year.
//!
//! Browsers allow WebGPU on pages over HTTPS or from the same machine. No public authority signs certificates for addresses
//! such as 192.168.0.2, so the server has its own: a self-signed certificate that the user's phone trusts, and a
//! certificate signed by it for the current addresses. When addresses change, only the second is replaced.
//!
//! The authority must not endanger the rest of the web. It can sign only server certificates, no further authorities, and
//! only for localhost, names in `.local`, private addresses and this machine's own addresses; and it expires after a year.
//! Its key is in a file that only its owner can read. A file that others can read is refused, because they may have copied
//! the key.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read as _, Write as _},
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DnType, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, NameConstraints, date_time_ymd,
};
use rullama_gguf::{WriteError, ollama::Digest};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use serde::{Deserialize, Serialize};

use crate::{
    failure::Failure,
    whole_file::{self, Readers},
};

const DAY: u64 = 86_400;

/// How long the authority and the server's certificate are valid. Browsers refuse more than 398 days.
const LIFETIME_DAYS: u64 = 365;

/// A certificate is replaced this long before it expires.
const MARGIN_DAYS: u64 = 30;

/// The number of addresses, including those of other networks, that a certificate covers.
const MOST_NAMES: usize = 32;

/// The private networks for which the authority may sign.
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

/// The server's certificate and its authority.
#[derive(Serialize, Deserialize)]
pub(crate) struct Certificate {
    authority: Pair,
    /// When the authority expires, in seconds since 1970. Files of earlier versions do not have this entry; their
    /// authorities, which were valid for ten years and for more than servers, are replaced.
    #[serde(default)]
    authority_expires: u64,
    /// Public addresses of this machine, for which the authority may sign too.
    public: BTreeSet<IpAddr>,
    server: Pair,
    /// The names and addresses that the server's certificate covers.
    names: BTreeSet<String>,
    /// When the server's certificate expires, in seconds since 1970.
    expires: u64,
}

/// A certificate and its private key, in PEM.
#[derive(Serialize, Deserialize)]
struct Pair {
    certificate: String,
    key: String,
}

/// The folder `rullama` in the user's data folder.
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
    /// The certificate in `folder` if it is still valid for these addresses, or else a new one, which is stored there.
    pub(crate) fn load_or_make(folder: &Path, addresses: &[IpAddr]) -> Result<Self, Failure> {
        let path = folder.join("certificate.json");
        let problem = |what: &str| Failure::new(format!("the certificate `{}` {what}", path.display()));
        let kept: Option<Self> = match read_private(&path) {
            Ok(None) => {
                let hint = "if nobody else could read it, make it private with `chmod 600`; otherwise delete it, and \
                            rullama makes a new one, which phones have to trust again";
                return Err(problem("contains private keys, and other users can read it").hint(hint));
            }
            Ok(Some(bytes)) => Some(serde_json::from_slice(&bytes).map_err(|error| {
                let hint = "delete it, and rullama makes a new one, which phones have to trust again";
                problem("is damaged").caused_by(error).hint(hint)
            })?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(problem("can't be read").caused_by(error)),
        };
        let mut names: BTreeSet<String> = addresses.iter().map(IpAddr::to_string).collect();
        names.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
        let mut public: BTreeSet<IpAddr> =
            addresses.iter().copied().filter(|address| !is_private(*address)).collect();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let mut authority = None;
        if let Some(kept) = kept {
            if names.is_subset(&kept.names)
                && kept.expires.min(kept.authority_expires) > now + MARGIN_DAYS * DAY
            {
                return Ok(kept);
            }
            // The addresses that an authority may sign for are part of its certificate.
            if public.is_subset(&kept.public) && kept.authority_expires > now + MARGIN_DAYS * DAY {
                authority = Some((kept.authority, kept.authority_expires));
            }
            public.extend(kept.public);
            for name in kept.names {
                if names.len() < MOST_NAMES {
                    names.insert(name);
                }
            }
        }
        let made = make(authority, public, names, now)
            .map_err(|error| Failure::new("the certificate can't be made").caused_by(error))?;
        made.keep(&path).map_err(|error| {
            problem("can't be written").caused_by(error).hint("choose another folder with --certificate")
        })?;
        Ok(made)
    }

    /// Writes the file so that only its owner can read it, because it contains the private keys.
    fn keep(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(folder)?;
        }
        let text = serde_json::to_vec_pretty(self)?;
        let write = |output: &mut whole_file::Output<'_>| Ok(output.write_all(&text)?);
        // A signal that arrives meanwhile stops the server right after it has started.
        let stop = AtomicBool::new(false);
        match whole_file::create::<WriteError>(path, Readers::Owner, &stop, write, |_| Ok(())) {
            Ok(_) => Ok(()),
            Err(WriteError::Io(error)) => Err(error),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// The SHA-256 digest of the certificate that phones are told to trust, as they show it: `12:AB:…`.
    pub(crate) fn fingerprint(&self) -> Result<String, Failure> {
        let hex = Digest::of(&self.authority()?).hex().to_ascii_uppercase();
        let bytes: Vec<&str> = (0..hex.len()).step_by(2).map(|at| &hex[at..at + 2]).collect();
        Ok(bytes.join(":"))
    }

    /// The certificate that phones are told to trust.
    pub(crate) fn authority(&self) -> Result<Vec<u8>, Failure> {
        Ok(certificate_der(&self.authority.certificate)?.to_vec())
    }

    /// The server's TLS configuration.
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
    Failure::new("the certificate is not valid")
        .caused_by(error)
        .hint("delete it, and rullama makes a new one")
}

/// The contents of a file that only its owner can read; `None` if others can read it.
fn read_private(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut file = File::open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            return Ok(None);
        }
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Makes the server's certificate, and an authority if none is given. A given authority comes with the time it expires.
fn make(
    authority: Option<(Pair, u64)>,
    public: BTreeSet<IpAddr>,
    names: BTreeSet<String>,
    now: u64,
) -> Result<Certificate, rcgen::Error> {
    // Valid from yesterday, because clocks differ. A machine without a clock of its own starts in 1970.
    let start = now.saturating_sub(DAY);
    let end = start + LIFETIME_DAYS * DAY;
    let (authority, authority_expires) = match authority {
        Some(authority) => authority,
        None => {
            let key = KeyPair::generate()?;
            let certificate = authority_params(&public, start, end).self_signed(&key)?.pem();
            (Pair { certificate, key: key.serialize_pem() }, end)
        }
    };
    // Signing uses only those parts of the authority's parameters that never change.
    let issuer = Issuer::new(authority_params(&public, start, end), KeyPair::from_pem(&authority.key)?);
    let mut params = CertificateParams::new(names.iter().cloned().collect::<Vec<_>>())?;
    params.distinguished_name.push(DnType::CommonName, "rullama");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let expires = end.min(authority_expires);
    last(&mut params, start, expires);
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer)?.pem();
    let server = Pair { certificate, key: key.serialize_pem() };
    Ok(Certificate { authority, authority_expires, public, server, names, expires })
}

fn authority_params(public: &BTreeSet<IpAddr>, start: u64, end: u64) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "rullama on a private network");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    // In an authority's certificate this limits the purposes of the certificates that it signs.
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let names = ["localhost", "local"].map(|name| GeneralSubtree::DnsName(name.to_owned()));
    let own = public.iter().map(|address| (*address, if address.is_ipv4() { 32 } else { 128 }));
    let networks = networks().chain(own);
    let networks = networks.map(|(address, bits)| CidrSubnet::from_addr_prefix(address, bits));
    let networks = networks.map(GeneralSubtree::IpAddress);
    params.name_constraints = Some(NameConstraints {
        permitted_subtrees: names.into_iter().chain(networks).collect(),
        excluded_subtrees: vec![],
    });
    last(&mut params, start, end);
    params
}

/// Sets the validity of a certificate, in seconds since 1970.
fn last(params: &mut CertificateParams, start: u64, end: u64) {
    let moment = |seconds| date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
    (params.not_before, params.not_after) = (moment(start), moment(end));
}

fn networks() -> impl Iterator<Item = (IpAddr, u8)> {
    PRIVATE_NETWORKS.into_iter().filter_map(|(address, bits)| Some((address.parse().ok()?, bits)))
}

/// Whether an address belongs to a private network.
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

    /// A machine whose clock starts in 1970 gets a certificate, too.
    #[test]
    fn a_clock_at_zero_makes_a_certificate() {
        for now in [0, DAY - 1, DAY, 2 * DAY] {
            let made = make(None, BTreeSet::new(), BTreeSet::from(["localhost".to_owned()]), now).unwrap();
            assert_eq!(made.expires, now.saturating_sub(DAY) + LIFETIME_DAYS * DAY, "{now}");
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
        let path = folder.path().join("certificate.json");
        let load = || Certificate::load_or_make(folder.path(), &[]).ok().unwrap();
        let mut old = load();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let soon = now + (MARGIN_DAYS - 1) * DAY;
        old.expires = soon;
        old.keep(&path).unwrap();
        let mut new = load();
        assert_ne!(new.server.certificate, old.server.certificate);
        assert!(new.expires > old.expires);
        assert_eq!(new.authority.certificate, old.authority.certificate);

        // With the authority, what it signed ends.
        new.authority_expires = soon;
        new.keep(&path).unwrap();
        let newest = load();
        assert_ne!(newest.authority.certificate, new.authority.certificate);
        assert_ne!(newest.server.certificate, new.server.certificate);
        assert!(newest.authority_expires > soon && newest.expires <= newest.authority_expires);
    }

    /// A certificate that was signed late by an authority does not outlive it.
    #[test]
    fn nothing_outlives_its_authority() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let first = make(None, BTreeSet::new(), BTreeSet::new(), now - 200 * DAY).unwrap();
        let ends = first.authority_expires;
        let second = make(Some((first.authority, ends)), BTreeSet::new(), BTreeSet::new(), now).unwrap();
        assert_eq!((second.expires, second.authority_expires), (ends, ends));
        assert_eq!(validity(&second.server)[1], validity(&second.authority)[1]);
    }

    /// When a certificate begins and ends, as it is written in it.
    fn validity(pair: &Pair) -> [String; 2] {
        let der = certificate_der(&pair.certificate).ok().unwrap();
        // A moment before 2050 is tag 23, a length of 13, and two digits each from the year to the second.
        let times = der.windows(15).filter(|bytes| bytes.starts_with(&[0x17, 13]) && bytes[14] == b'Z');
        let times: Vec<String> = times.map(|bytes| String::from_utf8(bytes[2..].to_vec()).unwrap()).collect();
        times.try_into().unwrap()
    }

    /// Both certificates are good for servers and nothing else, and for a year.
    #[test]
    fn certificates_are_for_servers_and_one_year() {
        let now = date_time_ymd(2027, 3, 2).unix_timestamp() as u64;
        let made = make(None, BTreeSet::new(), BTreeSet::from(["localhost".to_owned()]), now).unwrap();
        for pair in [&made.authority, &made.server] {
            assert_eq!(validity(pair), ["270301000000Z", "280229000000Z"]);
            let der = certificate_der(&pair.certificate).ok().unwrap();
            let holds = |bytes: &[u8]| der.windows(bytes.len()).any(|window| window == bytes);
            // The extension with the purposes 2.5.29.37: a list of one, 1.3.6.1.5.5.7.3.1, which is a server.
            let purposes = [6, 3, 0x55, 0x1d, 0x25, 4, 12, 0x30, 10, 6, 8, 0x2b, 6, 1, 5, 5, 7, 3, 1];
            assert!(holds(&purposes), "{der:02x?}");
        }
        let authority = certificate_der(&made.authority.certificate).ok().unwrap();
        // 2.5.29.19, critical: an authority, with no other below it; 2.5.29.15, critical: only signs certificates.
        for extension in [
            &[6, 3, 0x55, 0x1d, 0x13, 1, 1, 0xff, 4, 8, 0x30, 6, 1, 1, 0xff, 2, 1, 0][..],
            &[6, 3, 0x55, 0x1d, 0x0f, 1, 1, 0xff, 4, 4, 3, 2, 2, 4],
        ] {
            assert!(authority.windows(extension.len()).any(|window| window == extension), "{extension:02x?}");
        }
    }

    /// The authority of an earlier version may vouch for more, and for longer, than it should.
    #[test]
    fn an_authority_of_an_earlier_version_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("certificate.json");
        let load = || Certificate::load_or_make(folder.path(), &[]).ok().unwrap();
        let first = load();
        let mut file: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        file.as_object_mut().unwrap().remove("authority_expires");
        fs::write(&path, file.to_string()).unwrap();
        assert_ne!(load().authority.certificate, first.authority.certificate);
    }

    /// As `openssl x509 -fingerprint -sha256` prints it.
    #[test]
    fn a_fingerprint_is_the_digest_of_the_authority() {
        let made = make(None, BTreeSet::new(), BTreeSet::new(), 2 * DAY).unwrap();
        let fingerprint = made.fingerprint().ok().unwrap();
        assert_eq!(fingerprint.len(), 32 * 3 - 1);
        let digest = Digest::of(&made.authority().ok().unwrap()).hex();
        assert_eq!(fingerprint.replace(':', "").to_ascii_lowercase(), digest);
        assert!(fingerprint.split(':').all(|byte| byte.len() == 2), "{fingerprint}");
    }

    #[cfg(unix)]
    #[test]
    fn a_key_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("certificate.json");
        let load = || Certificate::load_or_make(folder.path(), &[]);
        let first = load().ok().unwrap();
        for mode in [0o640, 0o604, 0o620, 0o666] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let said = load().err().unwrap().to_string();
            assert!(said.contains("other users can read it") && said.contains("chmod 600"), "{said}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(load().ok().unwrap().server.certificate, first.server.certificate);
    }

    #[test]
    fn a_damaged_file_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("certificate.json");
        fs::write(&path, "{").unwrap();
        #[cfg(unix)]
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        assert!(Certificate::load_or_make(folder.path(), &[]).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "{");
    }
}
