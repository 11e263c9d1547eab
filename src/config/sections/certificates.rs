//! Reads `tls = { cert = …, key = … }` of a listener, and `ca` of a client.

use crate::config::load::read::Reader;
use crate::config::load::toml_reader::{Section, ValueError, refusal};
use crate::config::secret;
use crate::tls::pair::PairFiles;
use crate::tls::trust::Authorities;
use std::path::PathBuf;
use toml::de::DeValue;

impl Reader<'_> {
    /// Reads the certificate of a listener; `None` if it has none. The files are read only if secrets are.
    pub(crate) fn tls(&self, listener: &Section<'_>) -> Option<PairFiles> {
        let section = listener.section("tls");
        let table = section.table()?;
        for (key, example) in
            [("cert", "cert = \"/etc/scribed/tls/fullchain.pem\""), ("key", "key = \"/etc/scribed/tls/privkey.pem\"")]
        {
            if !table.contains_key(key) {
                section.report_missing(example);
            }
        }
        let cert = section.get("cert", |value| self.credential(value));
        let key = section.get("key", |value| self.credential(value));
        let (cert, key) = (cert?, key?);
        let files = PairFiles { cert: cert.value, key: key.value };
        if self.options.files
            && let Err(error) = files.read()
        {
            let fix = "both are PEM files: the certificate with its intermediate certificates, and its private key";
            listener.report_value("tls", section.span.clone(), refusal(format!("cannot be used: {error}"), fix));
        }
        Some(files)
    }

    /// Reads the authorities that are trusted in addition to those of the machine. The file is read only if secrets
    /// are: a command that connects to nothing need not be able to read it.
    pub(crate) fn authorities(&self, section: &Section<'_>) -> Authorities {
        let read = section.get("ca", |value| {
            let path = self.credential(value)?;
            if !self.options.files {
                return Ok(Authorities::default());
            }
            let fix = "a PEM file with one or more CA certificates";
            Authorities::read(&path).map_err(|error| refusal(format!("cannot be used: {error}"), fix))
        });
        read.map_or_else(Authorities::default, |read| read.value)
    }

    /// Reads the path of a file that may be a systemd credential.
    fn credential(&self, value: &DeValue<'_>) -> Result<PathBuf, ValueError> {
        let written = self.path_text(value)?;
        let Some(env) = self.options.env else { return Ok(self.path(&written)) };
        let path = secret::from_credentials(&written, env);
        let path = path.map_err(|(why, fix)| refusal(format!("cannot be used: {why}"), fix))?;
        Ok(self.path(&path.to_string_lossy()))
    }
}
