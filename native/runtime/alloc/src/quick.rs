//! Quick bins: blocks just freed, one size a list, for the next request of
//! that size on the same stream and thread. No lock, no search, no split.
//!
//! Requests up to `QUICK_MOST` are cut at a class size, at most an eighth
//! above the request, so that every block of a list fits every request of its
//! class. The lists hold a bounded number of bytes: what lies in them cannot
//! coalesce.

use std::cell::UnsafeCell;

use crate::bin::{bin_of, least_of};
use crate::block::{Block, Index, Slab, Word, NIL};

/// The largest request that quick bins serve, bytes.
pub const QUICK_MOST: u64 = 1 << 20;
/// Classes: those of `QUICK_MOST` over the smallest unit, 256.
pub const CLASSES: usize = 81;
/// `QUICK_MOST` in the smallest units.
const QUICK_UNITS: usize = (QUICK_MOST / 256) as usize;
/// The class of blocks that never go into a quick bin.
pub const NO_CLASS: u32 = u32::MAX;
/// A power of two, so that an index needs no check.
const ROOM: usize = CLASSES.next_power_of_two();

/// The class of a request in units: the first whose size is enough.
pub const fn class_of(units: u64) -> usize {
    let class = bin_of(units);
    class + (least_of(class) < units) as usize
}

/// `class_of` of every size that quick bins serve: looked up, because the way
/// past everything should cost nothing.
static CLASS: [u8; 2 * QUICK_UNITS] = {
    let mut table = [0; 2 * QUICK_UNITS];
    let mut units = 0;
    while units <= QUICK_UNITS {
        table[units] = class_of(units as u64) as u8;
        units += 1;
    }
    table
};

/// `class_of`, for a request of at most `QUICK_MOST` bytes.
#[inline(always)]
pub fn quick_class_of(units: u64) -> usize {
    CLASS[units as usize % (2 * QUICK_UNITS)] as usize
}

/// The bytes a request takes: its class's size up to `QUICK_MOST`, else the
/// next multiple of the unit (a power of two).
#[inline]
pub fn rounded(bytes: u64, unit: u64) -> u64 {
    if bytes > QUICK_MOST {
        return bytes.wrapping_add(unit - 1) & !(unit - 1);
    }
    least_of(class_of((bytes + unit - 1) >> unit.trailing_zeros())) << unit.trailing_zeros()
}

/// Counts of one thread's quick traffic; other threads only read.
#[derive(Default)]
pub struct Local {
    /// Bytes of blocks in the lists.
    pub held: Word,
    /// Blocks that came in.
    pub came: Word,
    /// Blocks that went back to the pool.
    pub left: Word,
    /// Blocks that served a request.
    pub served: Word,
    /// Bytes served.
    pub served_bytes: Word,
    /// `held` may not go below this without the peak being taken anew.
    pub floor: Word,
}

impl Local {
    /// Blocks in the lists.
    pub fn blocks(&self) -> u64 {
        self.came.get() - self.left.get() - self.served.get()
    }
}

/// The quick bins of one stream in one pool, and their counts.
pub struct Shelf {
    /// What went through; any thread reads.
    pub local: Local,
    quick: UnsafeCell<Quick>,
}

// SAFETY: `quick` is only touched through `open`, whose caller is the owner.
unsafe impl Sync for Shelf {}

impl Shelf {
    /// Empty lists that hold at most `limit` bytes.
    pub fn new(limit: u64) -> Self {
        Shelf { local: Local::default(), quick: UnsafeCell::new(Quick::new(limit)) }
    }

    /// The lists.
    ///
    /// # Safety
    /// The calling thread owns the stream, and keeps no other reference.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn open(&self) -> (&mut Quick, &Local) {
        // SAFETY: by the contract.
        (unsafe { &mut *self.quick.get() }, &self.local)
    }
}

/// The quick bins of one stream in one pool.
pub struct Quick {
    heads: [Index; ROOM],
    limit: u64,
}

impl Quick {
    /// Empty lists that hold at most `limit` bytes.
    pub fn new(limit: u64) -> Self {
        Quick { heads: [NIL; ROOM], limit }
    }

    /// Whether a block of this class and size may come in.
    #[inline(always)]
    pub fn has_room(&self, local: &Local, class: u32, bytes: u64) -> bool {
        class != NO_CLASS && local.held.get() + bytes <= self.limit
    }

    /// Takes a block in.
    #[inline(always)]
    pub fn push(&mut self, local: &Local, (index, block): (Index, &Block), class: u32) {
        let class = class as usize % ROOM;
        block.next.set(self.heads[class]);
        self.heads[class] = index;
        local.held.add(block.bytes.get());
        local.came.add(1);
    }

    /// The block that came last.
    #[inline(always)]
    pub fn pop<'a>(
        &mut self,
        local: &Local,
        slab: &'a Slab,
        class: usize,
    ) -> Option<(Index, &'a Block)> {
        let class = class % ROOM;
        let index = self.heads[class];
        if index == NIL {
            return None;
        }
        let block = slab.at(index);
        self.heads[class] = block.next.get();
        local.held.sub(block.bytes.get());
        Some((index, block))
    }

    /// Takes everything out.
    pub fn drain(&mut self, local: &Local, slab: &Slab) -> Vec<Index> {
        let mut all = Vec::new();
        for class in 0..CLASSES {
            while let Some((index, _)) = self.pop(local, slab, class) {
                local.left.add(1);
                all.push(index);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_wastes_an_eighth_at_most_and_no_class_is_missing() {
        for unit in [256, 512] {
            for bytes in (1..70_000).chain([QUICK_MOST - 1, QUICK_MOST]) {
                let size = rounded(bytes, unit);
                assert!(size >= bytes && size < bytes + bytes / 8 + unit, "{bytes}");
                assert!(class_of(size / unit) < CLASSES);
                assert_eq!(rounded(size, unit), size);
            }
        }
    }
}
