pub mod domain {
    pub mod names;
    pub mod transcript;
}
