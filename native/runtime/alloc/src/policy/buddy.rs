//! The binary buddy system (Knowlton 1965): powers of two, split in halves,
//! joined with the one block that was the other half.

use std::collections::{BTreeSet, HashMap};

use super::{full, Placed, Policy};
use crate::error::{Error, Result};

const LEAST: u32 = 9;

/// See the module.
pub struct Buddy {
    capacity: u64,
    top: u32,
    free: Vec<BTreeSet<u64>>,
    live: HashMap<u64, u32>,
    extent: u64,
}

impl Buddy {
    /// On a device of `capacity` bytes, of which the lowest are used first.
    pub fn new(capacity: u64) -> Self {
        let top = 64 - (capacity.max(1) - 1).leading_zeros();
        let mut free = vec![BTreeSet::new(); top as usize + 1];
        free[top as usize].insert(0);
        Buddy { capacity, top, free, live: HashMap::new(), extent: 0 }
    }
}

impl Policy for Buddy {
    fn allocate(&mut self, bytes: u64, _stream: u32) -> Result<Placed> {
        let order = (64 - (bytes.max(1) - 1).leading_zeros()).max(LEAST);
        // The lowest place, not the tightest: what counts is how far it reaches.
        let found = (order..=self.top)
            .filter_map(|level| self.free[level as usize].iter().next().map(|&at| (at, level)))
            .min();
        let (at, mut level) = found.ok_or_else(|| full(self.capacity, bytes))?;
        if at + (1 << order) > self.capacity {
            return Err(full(self.capacity, bytes));
        }
        self.free[level as usize].remove(&at);
        while level > order {
            level -= 1;
            self.free[level as usize].insert(at + (1 << level));
        }
        self.live.insert(at, order);
        self.extent = self.extent.max(at + (1 << order));
        Ok((at, at))
    }

    fn free(&mut self, name: u64) -> Result<()> {
        let mut level =
            self.live.remove(&name).ok_or(Error::BadHandle { handle: name, why: "not live" })?;
        let mut at = name;
        while level < self.top && self.free[level as usize].remove(&(at ^ (1 << level))) {
            at &= !(1 << level);
            level += 1;
        }
        self.free[level as usize].insert(at);
        Ok(())
    }

    fn reserved(&self) -> u64 {
        self.extent
    }

    fn driver_calls(&self) -> u64 {
        u64::from(self.extent > 0)
    }
}
