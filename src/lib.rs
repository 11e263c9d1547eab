pub mod domain {
    pub mod format;
    pub mod names;
    pub mod retry;
    pub mod transcript;
}
