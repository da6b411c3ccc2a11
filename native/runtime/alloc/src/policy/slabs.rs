//! Slabs by size class (Bonwick 1994): objects of one class fill slabs of their
//! own, and a slab never serves another class. Four classes a doubling.

use std::collections::HashMap;

use super::{behind, full, Placed, Policy};
use crate::error::{Error, Result};

const SLAB: u64 = 2 << 20;

/// See the module.
pub struct Slabs {
    capacity: u64,
    reserved: u64,
    next: u64,
    calls: u64,
    free: HashMap<u64, Vec<u64>>,
    live: HashMap<u64, u64>,
}

fn class_of(bytes: u64) -> u64 {
    let bytes = bytes.max(512);
    let step = (1u64 << (63 - bytes.leading_zeros())) / 4;
    (bytes + step - 1) / step * step
}

impl Slabs {
    /// On a device of `capacity` bytes.
    pub fn new(capacity: u64) -> Self {
        Slabs {
            capacity,
            reserved: 0,
            next: SLAB,
            calls: 0,
            free: HashMap::new(),
            live: HashMap::new(),
        }
    }
}

impl Policy for Slabs {
    fn allocate(&mut self, bytes: u64, _stream: u32) -> Result<Placed> {
        let class = class_of(bytes);
        let list = self.free.entry(class).or_default();
        if list.is_empty() {
            let size = if class < SLAB { SLAB / class * class } else { class };
            if self.reserved + size > self.capacity {
                return Err(full(self.capacity, bytes));
            }
            let next = behind(self.next, size)?;
            list.extend((0..size / class).rev().map(|n| self.next + n * class));
            self.next = next;
            self.reserved += size;
            self.calls += 1;
        }
        let at = list.pop().expect("just filled");
        self.live.insert(at, class);
        Ok((at, at))
    }

    fn free(&mut self, name: u64) -> Result<()> {
        let class =
            self.live.remove(&name).ok_or(Error::BadHandle { handle: name, why: "not live" })?;
        self.free.entry(class).or_default().push(name);
        Ok(())
    }

    fn reserved(&self) -> u64 {
        self.reserved
    }

    fn driver_calls(&self) -> u64 {
        self.calls
    }
}
