//! What others wrote, who may read, and what leaves this machine. `docs/explanation/threats.md` lists every threat with
//! its tests.

mod deadly_content;
mod escapes;
mod permissions;
mod plain_http;
mod secrets;
mod symbolic_links;
mod tls;
