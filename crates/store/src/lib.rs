//! Everything in the data directory: lists, transcripts, audit, pictures.
//!
//! `data_dir` prepares the directory, `names` lists the names in it, `document` keeps one versioned JSON file,
//! `transcript` one conversation, `audit` what agents were allowed and refused, `uploads` pictures; `cleaning`
//! removes what is no longer used; `migrations` converts files of older versions. All files are readable by their owner only, whatever the umask.

mod audit;
mod cleaning;
mod data_dir;
mod document;
pub mod migrations;
pub mod names;
pub mod transcript;
mod uploads;

use std::io;
use std::path::PathBuf;

pub use audit::{Audit, check_audit};
pub use cleaning::{
    AGE_MIN, CleanedFolder, CleaningRules, FolderSize, Kept, Removable, folder_size, plan, remove,
};
pub use data_dir::{DataDir, Holding, inspect};
pub use document::{ChangeError, Document, Versioned, problem};
pub use durable::ownership::{Lock, address_of_server};
#[cfg(fuzzing)]
pub use transcript::fuzz as fuzz_transcript;
pub use uploads::{NotTaken, PICTURE_BYTES_MAX, Upload, Uploads};

/// The reason why the data directory cannot be used, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "The data directory {} cannot be used: {source}. Make it writable, or choose another with --data-dir or LIMINAL_DATA_DIR.",
        path.display()
    )]
    Directory { path: PathBuf, source: io::Error },
    #[error(
        "{} is not empty and not a Liminal Builder data directory. Choose an empty or new directory with --data-dir or LIMINAL_DATA_DIR.",
        path.display()
    )]
    NotOurs { path: PathBuf },
    #[error(
        "Another Liminal Builder{holder} is using {}. Open that one, stop it, or choose another directory with --data-dir.",
        path.display()
    )]
    Locked { path: PathBuf, holder: String },
    #[error(
        "{} is of version {found}, but this Liminal Builder reads versions up to {known}. The file is unchanged: install a newer Liminal Builder, or choose another directory with --data-dir.",
        path.display()
    )]
    Newer {
        path: PathBuf,
        found: u64,
        known: u64,
    },
    #[error("{} could not be read: {source}. The file is unchanged: make it readable and start again.", path.display())]
    Read { path: PathBuf, source: io::Error },
}
