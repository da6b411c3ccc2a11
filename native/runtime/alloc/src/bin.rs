//! Free blocks by size: 8 bins a doubling, two levels of bitmap.
//!
//! A bin is a doubly linked list through the blocks themselves, so putting in,
//! taking out and finding the next filled bin are O(1). Blocks are cut at the
//! unit, not at bin sizes: a bin's width costs search quality, never bytes.
//! The size scheme is that of a float with a 3-bit mantissa, as in TLSF
//! (Masmano et al., "TLSF: a new dynamic memory allocator", 2004).

use crate::block::{Block, Index, Slab, State, NIL};

const MANTISSA_BITS: u32 = 3;
/// Bins a doubling.
pub const PER_DOUBLING: u64 = 1 << MANTISSA_BITS;
const ROWS: usize = 64;
/// A power of two, so that a bin's number needs no check.
const BINS: usize = ROWS << MANTISSA_BITS;

/// The bin of a size in units: the largest bin whose least size is not above it.
pub const fn bin_of(units: u64) -> usize {
    if units < PER_DOUBLING {
        return units as usize;
    }
    let exponent = 63 - units.leading_zeros() - MANTISSA_BITS;
    ((exponent as usize + 1) << MANTISSA_BITS) | (units >> exponent & (PER_DOUBLING - 1)) as usize
}

/// The least size of a bin, in units.
pub const fn least_of(bin: usize) -> u64 {
    let (row, column) = (bin as u64 >> MANTISSA_BITS, bin as u64 & (PER_DOUBLING - 1));
    if row == 0 {
        return column;
    }
    (PER_DOUBLING + column) << (row - 1)
}

/// The bins of one arena.
pub struct Bins {
    shift: u32,
    rows: u64,
    columns: [u8; ROWS],
    heads: [Index; BINS],
}

impl Bins {
    /// Empty bins for blocks that are multiples of `unit` bytes, a power of two.
    pub fn new(unit: u64) -> Self {
        let shift = unit.trailing_zeros();
        Bins { shift, rows: 0, columns: [0; ROWS], heads: [NIL; BINS] }
    }

    /// The bin of a block of so many bytes.
    #[inline(always)]
    fn of(&self, bytes: u64) -> usize {
        bin_of(bytes >> self.shift) % BINS
    }

    /// Puts a free block at the head of its bin.
    #[inline]
    pub fn put(&mut self, slab: &Slab, index: Index, block: &Block) {
        let bin = self.of(block.bytes.get());
        let head = self.heads[bin];
        block.next.set(head);
        block.prev.set(NIL);
        self.heads[bin] = index;
        if head != NIL {
            slab.at(head).prev.set(index);
            return;
        }
        self.columns[bin >> MANTISSA_BITS] |= 1 << (bin as u64 & (PER_DOUBLING - 1));
        self.rows |= 1 << (bin >> MANTISSA_BITS);
    }

    /// Takes a block out of its bin.
    #[inline]
    pub fn take(&mut self, slab: &Slab, block: &Block) {
        self.take_from(self.of(block.bytes.get()), slab, block);
    }

    /// As `take`, the block's bin being known.
    #[inline]
    pub fn take_from(&mut self, bin: usize, slab: &Slab, block: &Block) {
        let (prev, next) = (block.prev.get(), block.next.get());
        if next != NIL {
            slab.at(next).prev.set(prev);
        }
        if prev != NIL {
            slab.at(prev).next.set(next);
            return;
        }
        debug_assert!(std::ptr::eq(slab.at(self.heads[bin]), block));
        self.heads[bin] = next;
        if next == NIL {
            let row = bin >> MANTISSA_BITS;
            self.columns[row] &= !(1 << (bin as u64 & (PER_DOUBLING - 1)));
            if self.columns[row] == 0 {
                self.rows &= !(1 << row);
            }
        }
    }

    /// The first filled bin at or after `bin`.
    #[inline]
    pub fn filled_from(&self, bin: usize) -> Option<usize> {
        let row = bin >> MANTISSA_BITS;
        if row >= ROWS {
            return None;
        }
        let here = self.columns[row] & (0xffu8 << (bin as u64 & (PER_DOUBLING - 1)));
        if here != 0 {
            return Some(row << MANTISSA_BITS | here.trailing_zeros() as usize);
        }
        let above = self.rows & (!1u64 << row);
        if above == 0 {
            return None;
        }
        let row = above.trailing_zeros() as usize % ROWS;
        Some(row << MANTISSA_BITS | self.columns[row].trailing_zeros() as usize)
    }

    /// A usable block of at least `bytes`, after its bin: the tightest among `SCAN` blocks of
    /// the bin that may hold it, else the first usable one of a bin above.
    #[inline]
    pub fn find<'a>(
        &self,
        slab: &'a Slab,
        bytes: u64,
        usable: impl Fn(&Block) -> bool,
    ) -> Option<(usize, Index, &'a Block)> {
        const SCAN: usize = 32;
        let mut bin = self.of(bytes);
        let mut left = SCAN;
        while let Some(filled) = self.filled_from(bin) {
            let mut best = None;
            let mut least = u64::MAX;
            let filled = filled % BINS;
            let mut index = self.heads[filled];
            while index != NIL && left > 0 {
                let block = slab.at(index);
                let size = block.bytes.get();
                if size >= bytes && size < least && usable(block) {
                    best = Some((filled, index, block));
                    least = size;
                    if size == bytes {
                        break;
                    }
                }
                index = block.next.get();
                left -= 1;
            }
            if best.is_some() {
                return best;
            }
            // What is left of a crowded bin is not worth more steps; the ones
            // above fit by their size alone.
            left = left.max(4);
            bin = filled + 1;
        }
        None
    }

    /// Bytes found by walking all bins, or what is wrong with the first that is.
    pub fn audit(&self, slab: &Slab) -> Result<u64, String> {
        let mut total = 0;
        for (bin, &head) in self.heads.iter().enumerate() {
            let row = bin >> MANTISSA_BITS;
            let column = self.columns[row] >> (bin as u64 & (PER_DOUBLING - 1)) & 1;
            if (column == 1) != (head != NIL)
                || (self.rows >> row & 1 == 1) != (self.columns[row] != 0)
            {
                return Err(format!("the bitmap is wrong about bin {bin}"));
            }
            let mut index = head;
            while index != NIL {
                let block = slab.at(index);
                if bin_of(block.bytes.get() >> self.shift) != bin || block.state() != State::Free {
                    return Err(format!("block {index} is in bin {bin} by mistake"));
                }
                total += block.bytes.get();
                index = block.next.get();
            }
        }
        Ok(total)
    }

    /// The largest free block, bytes; 0 without any. Walks one bin.
    pub fn largest(&self, slab: &Slab) -> u64 {
        if self.rows == 0 {
            return 0;
        }
        let row = 63 - self.rows.leading_zeros() as usize;
        let column = 7 - self.columns[row].leading_zeros() as usize;
        let mut index = self.heads[row << MANTISSA_BITS | column];
        let mut largest = 0;
        while index != NIL {
            largest = largest.max(slab.at(index).bytes.get());
            index = slab.at(index).next.get();
        }
        largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_lies_between_its_bin_and_the_next() {
        for units in (1..5000).chain((0..50).map(|b| (1u64 << b) + 3)) {
            let bin = bin_of(units);
            assert!(least_of(bin) <= units && units < least_of(bin + 1), "{units}");
        }
    }
}
