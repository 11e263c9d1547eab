pub mod clock;

pub mod client {
    pub mod again;
    pub mod answer;
    pub mod contract;
    pub mod http;
    pub mod meaning;
    pub mod pace;
    pub mod sending;
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
    pub mod iso;
    pub mod page;
    pub mod record;
    pub mod result;
    pub mod upload;
}
