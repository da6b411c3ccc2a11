//! Quick bins: blocks just freed, one size a list, for the next request of
//! that size on the same stream and thread. No lock, no search, no split.
//!
//! Requests up to `QUICK_MOST` are cut at a class size, at most an eighth
//! above the request, so that every block of a list fits every request of its
//! class. The lists hold a bounded number of bytes: what lies in them cannot
//! coalesce.

use std::cell::UnsafeCell;
use std::sync::atomic::{fence, Ordering};

use crate::bin::{bin_of, least_of};
use crate::block::{Block, Index, Slab, Word, NIL};
use crate::stats::Stats;

/// The largest request that quick bins serve, bytes.
pub const QUICK_MOST: u64 = 1 << 20;
/// Classes: those of `QUICK_MOST` over the smallest unit, 256.
pub const CLASSES: usize = 81;
/// `QUICK_MOST` in the smallest units.
const QUICK_UNITS: usize = (QUICK_MOST / 256) as usize;
/// The class of blocks that never go into a quick bin.
pub const NO_CLASS: u8 = u8::MAX;
/// Lists for every value of a byte, so that a class needs no check.
const ROOM: usize = 1 << 8;

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
pub fn quick_class_of(units: u64) -> u8 {
    CLASS[units as usize % (2 * QUICK_UNITS)]
}

/// The bytes a request takes and its class: the class's size up to
/// `QUICK_MOST`, else the next multiple of the unit, which is `1 << shift`.
#[inline]
pub fn cut_of(bytes: u64, shift: u32) -> (u64, u8) {
    let units = bytes.wrapping_add((1 << shift) - 1) >> shift;
    if bytes > QUICK_MOST {
        return (units << shift, NO_CLASS);
    }
    let class = quick_class_of(units);
    (least_of(class as usize) << shift, class)
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
    /// `held` may not go below this without the peak being taken anew; both
    /// floors may be below zero, and are written under the pool's lock.
    pub floor: Word,
    /// Bytes asked for by requests that were served.
    pub asked: Word,
    /// Bytes asked for that came in, less those of requests that were served:
    /// may be below zero, and is then counted from 2^64 down.
    pub returned: Word,
    /// As `floor`, of `returned`.
    pub returned_floor: Word,
}

impl Local {
    /// Blocks in the lists. Read by any thread: what went out before what came in, so that
    /// it is never below zero.
    pub fn blocks(&self) -> u64 {
        let gone = self.served.get() + self.left.get();
        fence(Ordering::Acquire);
        self.came.get().saturating_sub(gone)
    }

    /// Puts what a pool's side does not see into its figures.
    pub fn enter(&self, stats: &mut Stats) {
        let (blocks, held) = (self.blocks(), self.held.get());
        let small = &mut stats.small;
        small.allocation.pass(self.served.get(), blocks);
        small.allocated_bytes.pass(self.served_bytes.get(), held);
        small.active_bytes.pass(self.served_bytes.get(), held);
        small.requested_bytes.pass(self.asked.get(), self.returned.get());
        stats.inactive_split_bytes += held;
    }

    /// Whether a request was served under all peaks that are known.
    #[inline(always)]
    pub fn is_below_peaks(&self) -> bool {
        self.held.get() as i64 >= self.floor.get() as i64
            && self.returned.get() as i64 >= self.returned_floor.get() as i64
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

    /// Whether a block of this size may come in.
    #[inline(always)]
    pub fn has_room(&self, local: &Local, bytes: u64) -> bool {
        local.held.get() + bytes <= self.limit
    }

    /// Takes a block in.
    #[inline(always)]
    pub fn push(&mut self, local: &Local, index: Index, block: &Block, size: u64) {
        let class = block.class.get() as usize;
        block.next.set(self.heads[class]);
        self.heads[class] = index;
        local.held.add(size);
        local.returned.add(block.requested_of(size));
        local.came.add(1);
    }

    /// The block of a class that came last, or NIL.
    #[inline(always)]
    pub fn head(&self, class: u8) -> Index {
        self.heads[class as usize]
    }

    /// Takes that block out; its size.
    #[inline(always)]
    pub fn pop(&mut self, local: &Local, block: &Block, class: u8) -> u64 {
        self.heads[class as usize] = block.next.get();
        let size = block.bytes.get();
        local.held.sub(size);
        size
    }

    /// Takes everything out.
    pub fn drain(&mut self, local: &Local, slab: &Slab) -> Vec<Index> {
        let mut all = Vec::new();
        for class in 0..CLASSES as u8 {
            while self.head(class) != NIL {
                all.push(self.head(class));
                let block = slab.at(self.head(class));
                let size = self.pop(local, block, class);
                local.left.add(1);
                local.returned.sub(block.requested_of(size));
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
        for shift in [8, 9] {
            let unit = 1 << shift;
            for bytes in (1..70_000).chain([QUICK_MOST - 1, QUICK_MOST]) {
                let (size, class) = cut_of(bytes, shift);
                assert!(size >= bytes && size < bytes + bytes / 8 + unit, "{bytes}");
                assert!((class as usize) < CLASSES);
                assert_eq!(class as usize, class_of(size / unit));
                assert_eq!(cut_of(size, shift), (size, class));
            }
            assert_eq!(cut_of(QUICK_MOST + 1, shift), (QUICK_MOST + unit, NO_CLASS));
        }
    }
}
