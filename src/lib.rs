pub mod clock;

pub mod client {
    pub mod contract;
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

pub mod pipeline {
    pub mod blocking;
    pub mod engine;
    pub mod follow;
    pub mod line;
    pub mod outcome;
    pub mod probe;
    pub mod resolve;
    pub mod settle;
    pub mod submit;
    pub mod upload;
    pub mod wait;
    pub mod walk;
    pub mod write;
}

pub mod source {
    pub mod folder;
    pub mod ignore;
    pub mod stamp;
}

pub mod store {
    pub mod contract;
    pub mod index;
    pub mod memory;
    pub mod params;
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
