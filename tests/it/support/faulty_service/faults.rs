//! The faults of a service: each fault of the contract alone, and all of them together.

use std::time::Duration;

/// How a service answers during an outage.
#[derive(Debug, Clone, Copy)]
pub enum Out {
    Status(u16),
    Reset,
    Hang,
    Page,
}

/// An outage: its start and its length.
#[derive(Debug, Clone, Copy)]
pub struct Outage {
    pub from: Duration,
    pub lasts: Duration,
    pub says: Out,
}

/// The faults of a service. Chances are percentages.
#[derive(Debug, Clone)]
pub struct Faults {
    pub name: &'static str,
    pub outages: &'static [Outage],
    /// The chance that a request fails and has no effect.
    pub wrong: u32,
    /// The chance that a request has its effect but the answer is lost.
    pub lost: u32,
    /// The chance that an answer is malformed: cut, a web page, another content type.
    pub malformed: u32,
    /// The chance that a transcription ends in an error of the service.
    pub dies: u32,
    /// The chance that a read shows a wrong status.
    pub odd: u32,
    /// The chance that the answer to an upload describes another file.
    pub void: u32,
    /// If set, the service accepts only the agreed number of concurrent transcriptions divided by this.
    pub learned_limits: Option<usize>,
    /// The delay until a transcription appears in lists, and in reads.
    pub list_late: Duration,
    pub reads_late: Duration,
    /// Whether lists ignore filters and have the oldest records first.
    pub ignores: bool,
    /// Whether callbacks are requested.
    pub calls: bool,
    pub calls_lost: u32,
    pub calls_doubled: u32,
    pub calls_early: u32,
    pub calls_forged: bool,
}

const WELL: Faults = Faults {
    name: "all is well",
    outages: &[],
    wrong: 0,
    lost: 0,
    malformed: 0,
    dies: 0,
    odd: 0,
    void: 0,
    learned_limits: None,
    list_late: Duration::ZERO,
    reads_late: Duration::ZERO,
    ignores: false,
    calls: false,
    calls_lost: 0,
    calls_doubled: 0,
    calls_early: 0,
    calls_forged: false,
};

const fn out(from: u64, lasts: u64, says: Out) -> Outage {
    Outage { from: Duration::from_secs(from), lasts: Duration::from_secs(lasts), says }
}

const LATE: Duration = Duration::from_secs(45);

/// All rows of the table.
pub const ALL: [Faults; 20] = [
    WELL,
    Faults { name: "out: 503", outages: &[out(10, 120, Out::Status(503))], ..WELL },
    Faults { name: "out: every connection is reset", outages: &[out(10, 120, Out::Reset)], ..WELL },
    Faults { name: "out: nothing is answered", outages: &[out(10, 120, Out::Hang)], ..WELL },
    Faults { name: "out: a web page", outages: &[out(10, 120, Out::Page)], ..WELL },
    Faults { name: "the key is refused for a while", outages: &[out(10, 60, Out::Status(401))], ..WELL },
    Faults { name: "no money for a while", outages: &[out(10, 60, Out::Status(402))], ..WELL },
    Faults { name: "5xx, 408, 409, 425: one in ten", wrong: 10, ..WELL },
    Faults { name: "answers lost: one in ten", lost: 10, ..WELL },
    Faults { name: "answers malformed: one in ten", malformed: 10, ..WELL },
    Faults { name: "it bears a third of what was agreed", learned_limits: Some(3), ..WELL },
    Faults { name: "lists and reads 45 s late, answers lost", lost: 5, list_late: LATE, reads_late: LATE, ..WELL },
    Faults { name: "filters ignored, answers lost", lost: 5, ignores: true, ..WELL },
    Faults { name: "transcriptions die: one in twenty", dies: 5, ..WELL },
    Faults { name: "states that mean nothing: one in ten", odd: 10, ..WELL },
    Faults { name: "uploads void: one in twenty", void: 5, ..WELL },
    Faults { name: "callbacks: half are lost", calls: true, calls_lost: 50, ..WELL },
    Faults { name: "callbacks: doubled, and forged", calls: true, calls_doubled: 100, calls_forged: true, ..WELL },
    Faults { name: "callbacks: early", calls: true, calls_early: 100, ..WELL },
    Faults {
        name: "all together",
        outages: &[
            out(10, 30, Out::Status(503)),
            out(60, 30, Out::Reset),
            out(110, 30, Out::Hang),
            out(160, 30, Out::Page),
            out(210, 30, Out::Status(401)),
        ],
        wrong: 3,
        lost: 3,
        malformed: 3,
        dies: 2,
        odd: 3,
        void: 2,
        learned_limits: Some(3),
        list_late: LATE,
        reads_late: LATE,
        ignores: true,
        calls: true,
        calls_lost: 20,
        calls_doubled: 20,
        calls_early: 20,
        calls_forged: true,
    },
];
