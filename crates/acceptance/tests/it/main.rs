//! The product through its listeners, command line and standard streams: the real binary with real files, sockets and
//! processes. Only the agent and the model are scripted.

mod admission;
mod agent_stdio;
mod agents;
mod architecture;
mod audit;
mod browser_keys;
mod cleaning;
mod client;
mod command;
mod configuration;
mod data_dir;
mod elicitations;
mod fire_attacks;
mod fire_faults;
mod gateway;
mod install;
#[cfg(target_os = "linux")]
mod keeper;
mod markup;
mod power_cut;
#[cfg(target_os = "linux")]
mod process_kills;
mod projects;
mod quirks;
mod reconnection;
mod sessions;
mod sign_in;
mod socket;
mod traffic;
mod turn_stress;
mod turns;
