//! The baseline programs.

pub(crate) mod page;
pub(crate) mod relay;
