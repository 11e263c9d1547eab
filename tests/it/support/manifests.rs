//! A source of manifests, and the rows of its receipts.

use super::bed::Bed;
use super::config::Config;
use super::stub::Stub;
use std::collections::BTreeMap;
use std::fs;

/// Returns a configuration with one source of the manifests in `inbox`, with more lines, and a template `film`.
pub fn config(stub: &Stub, more: &str) -> Config {
    let film = "[template.film]\ndiarization = true\ncustom_metadata = { shelf = \"{{ row.shelf_mark }}\" }";
    let lists = "name = \"lists\"\nmanifest = \"inbox/*.csv\"\nsettle = \"20ms\"\noutputs = [\"txt\", \"srt\"]";
    let config = Config::of(stub).limits(4, 8).service("price_per_hour = 36.0").section(film);
    config.source(&format!("{lists}\n{more}"))
}

pub fn bed(stub: &Stub, more: &str) -> Bed {
    config(stub, more).bed()
}

pub fn write(bed: &Bed, name: &str, text: impl AsRef<[u8]>) {
    let path = bed.path("inbox").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Returns a receipt's rows, each with its cells by column.
pub fn receipt(bed: &Bed, name: &str) -> Vec<BTreeMap<String, String>> {
    let bytes = fs::read(bed.path("inbox").join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes);
    let first = bytes.split(|byte| *byte == b'\n').next().unwrap();
    let delimiter = if first.contains(&b';') { b';' } else { b',' };
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(bytes);
    reader.deserialize().map(Result::unwrap).collect()
}

pub fn states(rows: &[BTreeMap<String, String>]) -> Vec<&str> {
    rows.iter().map(|row| row["scribed_state"].as_str()).collect()
}
