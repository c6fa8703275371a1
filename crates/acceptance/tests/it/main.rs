//! The product through its listeners, command line and standard streams: the real binary with real files, sockets and
//! processes. Only the agent and the model are scripted.

mod agent_stdio;
mod agents;
mod architecture;
mod client;
mod command;
mod continuity;
mod data_dir;
mod doors;
mod fire_attacks;
mod fire_faults;
mod gateway;
mod install;
#[cfg(target_os = "linux")]
mod keeper;
#[cfg(target_os = "linux")]
mod killed;
mod markup;
mod power_cut;
mod projects;
mod questions;
mod quirks;
mod sessions;
mod sign_in;
mod socket;
mod traffic;
mod turn_stress;
mod turns;
