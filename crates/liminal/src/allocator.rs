//! Memory that was used for a moment is given back: a long file that was read, an answer of megabytes.
//!
//! With each large block that the GNU C library is given back, it keeps larger ones for the next time, up to 32 MiB each and for every
//! thread, and hardly ever gives them back itself. Here it keeps to what it began with
//! (docs/decisions/0016-large-blocks-go-back.md). Other C libraries are left as they are.
//!
//! The one place with unsafe code: `tests/house.rs` holds it to that.

/// Blocks from here on are the system's, taken when they are needed and returned when they are not.
#[cfg(target_env = "gnu")]
const LARGE_BLOCK: std::ffi::c_int = 1024 * 1024;
/// So much that is free at the end of a heap stays: less would be taken and returned all the time.
#[cfg(target_env = "gnu")]
const KEPT_FREE: std::ffi::c_int = 2 * LARGE_BLOCK;

/// Before the first thread: what they have taken by then stays as it is.
#[cfg(target_env = "gnu")]
#[expect(
    unsafe_code,
    reason = "a function of the C library that nobody has wrapped"
)]
pub(crate) fn return_large_blocks() {
    for (setting, value) in [
        (libc::M_MMAP_THRESHOLD, LARGE_BLOCK),
        (libc::M_TRIM_THRESHOLD, KEPT_FREE),
    ] {
        // SAFETY: it takes two numbers and changes nothing but how memory is taken later; one it does not know it passes over.
        // Nothing is wrong if it does: then the library does as it always did.
        unsafe { libc::mallopt(setting, value) };
    }
}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn return_large_blocks() {}
