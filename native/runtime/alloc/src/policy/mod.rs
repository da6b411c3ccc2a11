//! Ways to place a trace's requests: ours, and those we compare with. Each runs
//! on numbers alone: no device, no streams that lag.

pub mod buddy;
pub mod extent;
pub mod ours;
pub mod planned;
pub mod pytorch;
pub mod slabs;

use crate::error::{Error, Result};
use crate::replay::Record;

/// A place given out: what names it at the free, and where it is.
pub type Placed = (u64, u64);

/// A way to place requests.
pub trait Policy {
    /// Places `bytes` (at least 1) for a stream.
    fn allocate(&mut self, bytes: u64, stream: u32) -> Result<Placed>;
    /// Frees by the name that `allocate` gave.
    fn free(&mut self, name: u64) -> Result<()>;
    /// Bytes held from the device.
    fn reserved(&self) -> u64;
    /// Calls that a driver would have seen.
    fn driver_calls(&self) -> u64;
}

/// The names of all policies.
pub const NAMES: [&str; 8] =
    ["bedplate", "bedplate-noremap", "planned", "pytorch", "rmm", "best-fit", "buddy", "slab"];

/// The most that a device of a replay has; sums of two sizes up to it do not wrap.
pub const MOST_CAPACITY: u64 = 1 << 62;

/// A policy by name, on a device of `capacity` bytes. Only `planned` reads the
/// trace beforehand.
pub fn by_name(name: &str, capacity: u64, trace: &[Record]) -> Result<Box<dyn Policy>> {
    let capacity = capacity.min(MOST_CAPACITY);
    Ok(match name {
        "bedplate" => Box::new(ours::Ours::new(capacity, true)?),
        "bedplate-noremap" => Box::new(ours::Ours::new(capacity, false)?),
        "planned" => Box::new(planned::Planned::new(capacity, trace)?),
        "pytorch" => Box::new(pytorch::PyTorch::new(capacity)),
        "rmm" => Box::new(extent::Extent::doubling(capacity)),
        "best-fit" => Box::new(extent::Extent::exact(capacity)),
        "buddy" => Box::new(buddy::Buddy::new(capacity)),
        "slab" => Box::new(slabs::Slabs::new(capacity)),
        _ => {
            return Err(Error::Invalid(format!(
                "there is no policy `{name}`; there are {}",
                NAMES.join(", ")
            )))
        }
    })
}

/// The address behind `bytes` at `at`: a replay that gives memory back and takes new
/// goes on to higher ones.
pub fn behind(at: u64, bytes: u64) -> Result<u64> {
    at.checked_add(bytes)
        .ok_or_else(|| Error::Invalid("the replay has used all addresses below 2^64".into()))
}

/// The refusal of a device that is full.
pub fn full(capacity: u64, bytes: u64) -> Error {
    Error::OutOfMemory(Box::new(crate::error::Shortage {
        pool: "replay",
        requested: bytes,
        reserved: capacity,
        ..Default::default()
    }))
}
