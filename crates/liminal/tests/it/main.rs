//! Parts of the build of `liminal` that can be tested without the binary.

mod joined;
