//! Dependencies come only from allowed places; the same rules as `deny.toml`, for those who have no cargo-deny.

use std::path::Path;
use toml::Value;

fn table(name: &str) -> toml::Table {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
    text.parse().unwrap()
}

#[test]
fn every_crate_is_from_the_registry_and_none_is_banned() {
    let deny = table("deny.toml");
    assert_eq!(deny["sources"]["unknown-git"].as_str(), Some("deny"));
    assert_eq!(deny["sources"]["unknown-registry"].as_str(), Some("deny"));
    let banned: Vec<&str> =
        deny["bans"]["deny"].as_array().unwrap().iter().map(|entry| entry["crate"].as_str().unwrap()).collect();
    assert!(banned.contains(&"openssl"));
    for lock in ["Cargo.lock", "fuzz/Cargo.lock"] {
        let lock = table(lock);
        let packages = lock["package"].as_array().unwrap();
        assert!(packages.len() > 100);
        for package in packages {
            let name = package["name"].as_str().unwrap();
            assert!(!banned.contains(&name), "{name} is banned by deny.toml");
            let source = package.get("source").map(Value::as_str);
            let is_own = source.is_none() && name.starts_with("scribed");
            let is_registered =
                source.flatten().is_some_and(|from| from.starts_with("registry+https://github.com/rust-lang/"));
            assert!(is_own || is_registered && package.get("checksum").is_some(), "{name} comes from {source:?}");
        }
    }
}
