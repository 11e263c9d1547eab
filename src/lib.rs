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

/// Files written for a job: what is in them, what they are called, how they get into their place.
pub mod output {
    pub mod formats;
    pub mod naming;
    mod pieces;
    pub mod placing;
    pub mod results;
    pub mod subtitles;
    mod temporary;
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
