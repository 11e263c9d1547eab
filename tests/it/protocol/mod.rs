//! Between scribed and a service: everything is bought once, whatever the service does.

mod batch_poll;
mod fault_mix;
mod faults;
mod http_client;
mod list_scan;
mod parts_simulation;
mod recovery;
mod service_answers;
mod sim;
mod simulation;
mod state_machine;
mod unmarked_list;
mod wire_samples;
mod wrong_answers;
