//! Private files that survive a crash: replaced whole, appended to, locked, set aside.
//!
//! `files` replaces, renames and sets aside; `lines` appends whole lines and reads them back; `ownership` holds the
//! lock of a data directory, and refuses writes into a directory that this process no longer owns.

mod files;
pub mod lines;
pub mod ownership;

pub use files::{
    PRIVATE_DIRECTORY, SET_ASIDE, TEMPORARY, create_private_dir, keep_beside, make_private,
    open_private, rename_new, replace, set_aside, sync_directory_of, write_synced,
};
