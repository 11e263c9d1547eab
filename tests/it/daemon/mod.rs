//! `scribed run` and `once` as processes: start, schedules, stop, kill, continue.

mod budget;
mod callback_listener;
mod crash_points;
mod kill_and_stop;
mod lanes;
mod moved_clock;
mod part_speakers;
mod parts;
mod pauses;
mod reload;
mod run;
mod scan_schedule;
mod service_waits;
mod several_services;
mod shortage;
mod submit_windows;
mod systemd;
mod tight_budget;
mod wrong_clock;
