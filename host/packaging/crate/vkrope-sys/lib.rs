// SPDX-License-Identifier: MIT
#![doc = include_str!("../README.md")]
#![allow(non_camel_case_types, non_snake_case)]

#[rustfmt::skip]
mod declarations;
pub use declarations::*;

// Handles and pointers, which only unsafe functions use.
unsafe impl Send for vkrope_device_ref {}
unsafe impl Sync for vkrope_device_ref {}

/// Infos are equal if one kernel serves both.
impl PartialEq for vkrope_kernel_info {
    fn eq(&self, other: &Self) -> bool {
        unsafe { vkrope_kernel_info_equal(self, other) != 0 }
    }
}
impl Eq for vkrope_kernel_info {}
impl std::hash::Hash for vkrope_kernel_info {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(unsafe { vkrope_kernel_info_hash(self) });
    }
}
