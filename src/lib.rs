pub mod clock;

pub mod domain {
    pub mod format;
    pub mod names;
    pub mod retry;
    pub mod transcript;
}

pub mod wire {
    pub mod error;
    pub mod iso;
    pub mod page;
    pub mod record;
    pub mod result;
    pub mod upload;
}
