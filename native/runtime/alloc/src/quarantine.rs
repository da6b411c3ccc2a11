//! The sanitizer's shelf: freed blocks that nobody gets for a while.
//!
//! As soon as the work that may use a block has passed, the block is filled
//! with poison; when it leaves the shelf the poison must be whole. A byte that
//! changed was written after the free.

use std::collections::VecDeque;

use crate::arena::Ground;
use crate::block::{Index, State};
use crate::error::Result;
use crate::fence::device;
use crate::phys::Memory;

/// The byte of poison.
pub const POISON: u8 = 0xdb;

/// See the module.
pub struct Quarantine {
    /// Bytes on the shelf.
    pub bytes: u64,
    /// What was found: a sentence each.
    pub found: Vec<String>,
    pool: &'static str,
    shelf: VecDeque<(Index, bool)>,
}

impl Quarantine {
    /// An empty shelf of a pool.
    pub fn new(pool: &'static str) -> Self {
        Quarantine { bytes: 0, found: Vec::new(), pool, shelf: VecDeque::new() }
    }

    /// Takes a freed block in.
    pub fn push(&mut self, g: Ground, index: Index) {
        let block = g.slab.at(index);
        block.set_state(State::Quarantine);
        self.bytes += block.bytes.get();
        self.shelf.push_back((index, false));
    }

    /// Poisons what nobody works on any more.
    pub fn poison(&mut self, g: Ground) -> Result<()> {
        for (index, poisoned) in &mut self.shelf {
            if !*poisoned && g.passed(*index)? {
                let (place, offset, bytes) = place(g, *index);
                *poisoned = g.phys.fill(place, offset, bytes, POISON).map_err(device)?;
            }
        }
        Ok(())
    }

    /// Lets the oldest block go.
    pub fn pop(&mut self, g: Ground) -> Option<Index> {
        let (index, poisoned) = self.shelf.pop_front()?;
        let (where_, offset, bytes) = place(g, index);
        self.bytes -= bytes;
        if poisoned {
            if let Ok(Some(at)) = g.phys.differs(where_, offset, bytes, POISON) {
                let block = g.slab.at(index);
                self.found.push(format!(
                    "pool `{}`: byte {} of the block at {:#x} ({} bytes, stream {}) was written \
                     after its free",
                    self.pool,
                    at - offset,
                    block.address.get(),
                    block.requested(),
                    block.stream.get()
                ));
            }
        }
        Some(index)
    }
}

fn place(g: Ground, index: Index) -> (Memory, u64, u64) {
    let block = g.slab.at(index);
    let anchor = g.slab.anchor(index);
    let place = Memory { handle: anchor.memory.get(), address: block.address.get() };
    (place, anchor.offset.get(), block.bytes.get())
}
