//! A caching allocator of device memory.
//!
//! The policy (bins, split and coalesce, quick bins, pools, remap) runs over
//! the trait `phys::Phys`, so the same code manages a HAL device and a device
//! that exists only as numbers. `abi` is the C interface.

#![warn(missing_docs, unsafe_op_in_unsafe_fn)]

pub mod abi;
pub mod allocator;
pub mod arena;
pub mod bin;
pub mod block;
pub mod check;
pub mod conf;
pub mod cuda;
pub mod error;
pub mod fake;
pub mod fence;
pub mod figures;
pub mod gate;
pub mod hal;
pub mod lock;
pub mod map;
pub mod numbers;
pub mod phys;
pub mod plain;
pub mod plan;
pub mod policy;
pub mod pool;
pub mod quarantine;
pub mod quick;
pub mod replay;
pub mod shortcut;
pub mod stats;
pub mod store;
pub mod taken;
pub mod torch;
