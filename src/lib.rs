pub mod clock;

pub mod client {
    pub mod contract;
}

pub mod config {
    pub mod blind;
    pub mod keys;
    pub mod meant;
    pub mod problem;
    pub mod secret;
    pub mod starter;
    pub mod template;
    pub mod written;
}

pub mod domain {
    pub mod fault;
    pub mod format;
    pub mod job;
    pub mod names;
    pub mod path;
    pub mod retry;
    pub mod stage;
    pub mod token;
    pub mod transcript;
}

pub mod store {
    pub mod contract;
    pub mod index;
    pub mod memory;
    pub mod queue;
}

pub mod wire {
    pub mod error;
    pub mod fields;
    pub mod iso;
    pub mod page;
    pub mod params;
    pub mod record;
    pub mod result;
    pub mod upload;
}
