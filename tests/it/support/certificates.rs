//! A site's certificate authority and the certificates that it signs, made with openssl when a test runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

pub struct Authority(TempDir);

/// The files of a certificate and its key.
pub struct Issued {
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl Authority {
    pub fn new() -> Self {
        let authority = Self(tempfile::tempdir().unwrap());
        let more = ["-x509", "-keyout", "ca.key", "-out", "ca.pem", "-days", "30", "-subj", "/CN=a site"];
        authority.openssl(&[&REQUEST[..], &more[..]].concat());
        authority
    }

    pub fn pem(&self) -> PathBuf {
        self.0.path().join("ca.pem")
    }

    /// Issues a certificate for this machine that is valid for `days` days; a negative number gives an expired one.
    pub fn issue(&self, name: &str, days: i32) -> Issued {
        let file = |end: &str| format!("{name}.{end}");
        let (key, csr, cert) = (file("key"), file("csr"), file("pem"));
        let extensions = "subjectAltName=IP:127.0.0.1,DNS:localhost\nbasicConstraints=critical,CA:FALSE\n";
        fs::write(self.0.path().join("extensions"), extensions).unwrap();
        self.openssl(&[&REQUEST[..], &["-keyout", &key, "-out", &csr, "-subj", "/CN=a service"]].concat());
        let (days, ca) = (days.to_string(), ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"]);
        let signing = ["x509", "-req", "-in", &csr, "-days", &days, "-extfile", "extensions", "-out", &cert];
        self.openssl(&[&signing[..], &ca[..]].concat());
        Issued { cert: self.0.path().join(cert), key: self.0.path().join(key) }
    }

    fn openssl(&self, arguments: &[&str]) {
        let ran = Command::new("openssl").args(arguments).current_dir(self.0.path()).output();
        let ran = ran.expect("openssl runs: install the package `openssl`");
        assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    }
}

const REQUEST: [&str; 6] = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];

impl Issued {
    /// Returns the `tls` line of a section of `jobs.toml`.
    pub fn line(&self) -> String {
        line(&self.cert, &self.key)
    }
}

pub fn line(cert: &Path, key: &Path) -> String {
    format!("tls = {{ cert = \"{}\", key = \"{}\" }}\n", cert.display(), key.display())
}
