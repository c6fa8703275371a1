//! Only its tests are of interest.
