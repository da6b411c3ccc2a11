//! Best fit with coalescing over extents that never go back: once growing by
//! what is needed, and once by doubling, as RMM's pool resource documents it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{behind, full, Placed, Policy};
use crate::error::{Error, Result};

const UNIT: u64 = 256;

/// See the module.
pub struct Extent {
    capacity: u64,
    doubling: bool,
    reserved: u64,
    next: u64,
    calls: u64,
    by_address: BTreeMap<u64, u64>,
    by_size: BTreeSet<(u64, u64)>,
    live: HashMap<u64, u64>,
}

impl Extent {
    fn new(capacity: u64, doubling: bool) -> Self {
        Extent {
            capacity,
            doubling,
            reserved: 0,
            next: UNIT,
            calls: 0,
            by_address: BTreeMap::new(),
            by_size: BTreeSet::new(),
            live: HashMap::new(),
        }
    }

    /// One extent that grows at its end by what is missing.
    pub fn exact(capacity: u64) -> Self {
        Self::new(capacity, false)
    }

    /// Extents that double the pool.
    pub fn doubling(capacity: u64) -> Self {
        Self::new(capacity, true)
    }

    fn insert(&mut self, mut at: u64, mut bytes: u64) {
        if let Some(&size) = self.by_address.get(&(at + bytes)) {
            self.remove(at + bytes, size);
            bytes += size;
        }
        let before = self.by_address.range(..at).next_back().map(|(&a, &b)| (a, b));
        if let Some((below, size)) = before {
            if below + size == at {
                self.remove(below, size);
                at = below;
                bytes += size;
            }
        }
        self.by_address.insert(at, bytes);
        self.by_size.insert((bytes, at));
    }

    fn remove(&mut self, at: u64, bytes: u64) {
        self.by_address.remove(&at);
        self.by_size.remove(&(bytes, at));
    }

    fn grow(&mut self, bytes: u64) -> Result<()> {
        let last = self.by_address.iter().next_back().map(|(&a, &b)| (a, b));
        let mut more = match last {
            Some((at, size)) if at + size == self.next && !self.doubling => bytes - size,
            _ => bytes,
        };
        if self.doubling {
            more = more.max(self.reserved).min((self.capacity - self.reserved).max(more));
        }
        if self.reserved + more > self.capacity {
            return Err(full(self.capacity, bytes));
        }
        let at = self.next;
        self.next = behind(at, more + if self.doubling { UNIT } else { 0 })?;
        self.reserved += more;
        self.calls += 1;
        self.insert(at, more);
        Ok(())
    }
}

impl Policy for Extent {
    fn allocate(&mut self, bytes: u64, _stream: u32) -> Result<Placed> {
        let size = (bytes + UNIT - 1) / UNIT * UNIT;
        if self.by_size.range((size, 0)..).next().is_none() {
            self.grow(size)?;
        }
        let &(held, at) = self.by_size.range((size, 0)..).next().expect("grown to fit");
        self.remove(at, held);
        if held > size {
            self.by_address.insert(at + size, held - size);
            self.by_size.insert((held - size, at + size));
        }
        self.live.insert(at, size);
        Ok((at, at))
    }

    fn free(&mut self, name: u64) -> Result<()> {
        let bytes =
            self.live.remove(&name).ok_or(Error::BadHandle { handle: name, why: "not live" })?;
        self.insert(name, bytes);
        Ok(())
    }

    fn reserved(&self) -> u64 {
        self.reserved
    }

    fn driver_calls(&self) -> u64 {
        self.calls
    }
}
