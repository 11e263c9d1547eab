//! A `jobs.toml` for a test: a service at an address, short waits, and the test's sources.

use super::bed::Bed;
use super::stub::Stub;
use std::fmt::{self, Display, Formatter};

/// A builder for a `jobs.toml`; [`Display`] writes the file.
#[derive(Clone)]
pub struct Config {
    url: String,
    poll: String,
    limits: (usize, usize),
    accepts: String,
    service: String,
    retry: String,
    sections: String,
    sources: String,
}

impl Config {
    /// Uses the stub as the service.
    pub fn of(stub: &Stub) -> Self {
        Self::at(&stub.url())
    }

    /// Uses the service at this address; its key is in the file `key`, which [`Bed`] creates.
    pub fn at(url: &str) -> Self {
        let [poll, retry] = ["min = \"20ms\", max = \"50ms\"", "first = \"50ms\"\nmax = \"100ms\""].map(String::from);
        let [service, sections, sources] = [const { String::new() }; 3];
        Self { url: url.to_owned(), poll, limits: (4, 20), accepts: String::new(), service, retry, sections, sources }
    }

    /// Sets `poll` of `[service]`, which has short waits by default.
    pub fn poll(mut self, values: &str) -> Self {
        values.clone_into(&mut self.poll);
        self
    }

    /// Sets the limits of concurrent uploads and transcriptions.
    pub fn limits(mut self, uploads: usize, running: usize) -> Self {
        self.limits = (uploads, running);
        self
    }

    /// Sets what the service accepts of one recording: `duration = "12s"`.
    pub fn accepts(mut self, limits: &str) -> Self {
        self.accepts = format!(", {limits}");
        self
    }

    /// Adds lines to `[service]`.
    pub fn service(mut self, lines: &str) -> Self {
        self.service += &format!("{lines}\n");
        self
    }

    /// Sets the lines of `[retry]`, which has short waits by default.
    pub fn retry(mut self, lines: &str) -> Self {
        lines.clone_into(&mut self.retry);
        self
    }

    /// Adds a whole section.
    pub fn section(mut self, text: &str) -> Self {
        self.sections += &format!("{text}\n");
        self
    }

    /// Adds a source with these lines.
    pub fn source(mut self, lines: &str) -> Self {
        self.sources += &format!("[[source]]\n{lines}\n");
        self
    }

    /// Adds a source of this folder, whose files settle almost at once, with more lines.
    pub fn folder(self, folder: &str, lines: &str) -> Self {
        self.source(&format!("folder = \"{folder}\"\nsettle = \"20ms\"\n{lines}"))
    }

    /// Adds a source of the folder `inbox`, with more lines.
    pub fn inbox(self, lines: &str) -> Self {
        self.folder("inbox", lines)
    }

    /// Creates a folder with this configuration.
    pub fn bed(&self) -> Bed {
        Bed::new(self)
    }
}

impl Display for Config {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let Self { url, poll, limits: (uploads, running), accepts, service, retry, sections, sources } = self;
        writeln!(to, "[service]\nurl = \"{url}\"\nkey = \"file:key\"\nlag = \"0s\"\npoll = {{ {poll} }}")?;
        writeln!(
            to,
            "limits = {{ uploads = {uploads}, running = {running}, requests_per_second = 1000{accepts} }}\n{service}"
        )?;
        writeln!(to, "[retry]\n{retry}\n{sections}\n{sources}")
    }
}
