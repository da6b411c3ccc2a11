//! Placement by a plan made from the whole trace beforehand.

use super::{full, Placed, Policy};
use crate::error::{Error, Result};
use crate::plan::{plan, sizes};
use crate::replay::Record;

/// See the module.
pub struct Planned {
    offsets: Vec<u64>,
    sizes: Vec<u64>,
    capacity: u64,
    reserved: u64,
    next: usize,
}

impl Planned {
    /// Plans the trace; its requests must then come in its order. What the plan puts
    /// beyond `capacity` fails; the device holds what the others need, from the start.
    pub fn new(capacity: u64, trace: &[Record]) -> Result<Self> {
        let (offsets, sizes) = (plan(trace)?.offsets, sizes(trace)?);
        let ends = offsets.iter().zip(&sizes).map(|(at, bytes)| at + bytes);
        let reserved = ends.filter(|&end| end <= capacity).max().unwrap_or(0);
        Ok(Planned { offsets, sizes, capacity, reserved, next: 0 })
    }
}

impl Policy for Planned {
    fn allocate(&mut self, bytes: u64, _stream: u32) -> Result<Placed> {
        let (&offset, &size) = self
            .offsets
            .get(self.next)
            .zip(self.sizes.get(self.next))
            .ok_or_else(|| Error::Invalid("a request that the plan does not know".into()))?;
        self.next += 1;
        if offset + size > self.capacity {
            return Err(full(self.capacity, bytes));
        }
        Ok((self.next as u64, offset))
    }

    fn free(&mut self, _name: u64) -> Result<()> {
        Ok(())
    }

    fn reserved(&self) -> u64 {
        self.reserved
    }

    fn driver_calls(&self) -> u64 {
        1
    }
}
