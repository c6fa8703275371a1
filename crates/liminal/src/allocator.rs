//! Returns large memory blocks to the system as soon as they are freed.
//!
//! The GNU C library raises its mmap threshold with each large block that is freed, up to 32 MiB, and from then on
//! keeps blocks below it in every thread's heap. Fixed thresholds prevent that
//! (docs/decisions/0016-large-blocks-go-back.md). Other C libraries are not changed.
//!
//! The only module with unsafe code, which `tests/house.rs` checks.

/// Blocks of this size (1 MiB) and larger are mapped when allocated and unmapped when freed.
#[cfg(target_env = "gnu")]
const LARGE_BLOCK: std::ffi::c_int = 1024 * 1024;
/// Free memory kept at the end of a heap; with less, the heap would shrink and grow constantly.
#[cfg(target_env = "gnu")]
const KEPT_FREE: std::ffi::c_int = 2 * LARGE_BLOCK;

/// Sets the thresholds. Must run before the first thread starts: existing heaps are not changed.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "no crate wraps this function of the C library")]
pub(crate) fn return_large_blocks() {
    for (setting, value) in [
        (libc::M_MMAP_THRESHOLD, LARGE_BLOCK),
        (libc::M_TRIM_THRESHOLD, KEPT_FREE),
    ] {
        // SAFETY: `mallopt` takes two integers and only changes how later allocations are made. It ignores an unknown
        // setting; the allocator then keeps its default.
        unsafe { libc::mallopt(setting, value) };
    }
}

#[cfg(not(target_env = "gnu"))]
pub(crate) fn return_large_blocks() {}
