//! The quick way: past the lock and the search, through the lists of the stream's own
//! thread.
//!
//! Nothing here can panic, so the C entries call it without a guard. A request or a
//! free that is not for it is told so and takes the pool's lock.

use crate::allocator::{Allocation, Allocator};
use crate::block::{handle_of, parts_of, Block, Index, State, NIL};
use crate::error::Result;
use crate::fence::POOLS;
use crate::quick::{quick_class_of, NO_CLASS, QUICK_MOST};

impl Allocator {
    /// From the quick bin, when there is one for it: no lock, and nothing in it
    /// can panic. Writes `out` and returns whether it did.
    #[inline(always)]
    pub fn take_quick(&self, pool: u32, bytes: u64, stream: u32, out: &mut Allocation) -> bool {
        if bytes.wrapping_sub(1) >= QUICK_MOST {
            return false;
        }
        let (quick, local) = match self.streams.own_quick(stream, pool) {
            Some(found) => found,
            None => return false,
        };
        let class = quick_class_of((bytes + self.unit_mask) >> self.unit_shift);
        let index = quick.head(class);
        if index == NIL {
            return false;
        }
        let block = self.slab.at(index);
        let size = quick.pop(local, block, class);
        local.served.add(1);
        local.served_bytes.add(size);
        local.asked.add(bytes);
        local.returned.sub(bytes);
        block.set_requested(bytes, size);
        let generation = block.revive();
        self.tell(index, block, (size, generation), out);
        local.is_below_peaks() || self.passed_peak(pool)
    }

    /// What the caller gets of a block.
    #[inline(always)]
    pub(crate) fn tell(
        &self,
        index: Index,
        block: &Block,
        (size, generation): (u64, u32),
        out: &mut Allocation,
    ) {
        out.handle = handle_of(index, generation);
        out.address = block.address.get();
        out.bytes = size;
        if self.anchored {
            let anchor = self.slab.anchor(index);
            out.memory = anchor.memory.get();
            out.offset = anchor.offset.get();
        } else {
            out.memory = 0;
            out.offset = 0;
        }
    }

    #[cold]
    fn passed_peak(&self, pool: u32) -> bool {
        let number = pool as usize % POOLS;
        self.note_peak(&mut self.pool(number), number);
        true
    }

    /// Into the quick bin, when it is open for the block; as `take_quick`.
    #[inline(always)]
    pub fn give_quick(&self, handle: u64) -> bool {
        let (index, generation) = parts_of(handle);
        let block = match self.slab.get(index) {
            Some(block) => block,
            None => return false,
        };
        if block.class.get() == NO_CLASS {
            return false;
        }
        let place = block.place.get();
        match self.streams.own_quick(block.stream.get(), u32::from(place >> 1)) {
            Some((quick, local)) => {
                let bytes = block.bytes.get();
                let fits = quick.has_room(local, bytes);
                if fits && block.end_life(generation, State::Quick).is_ok() {
                    quick.push(local, index, block, bytes);
                    return true;
                }
                false
            }
            None => false,
        }
    }

    /// Empties the quick bins of a stream of the calling thread.
    pub fn flush(&self, stream: u32) -> Result<()> {
        self.streams.get(stream)?;
        self.flush_own(stream);
        Ok(())
    }

    /// As `flush`; a stream of another thread, or of none, has nothing for this one.
    pub(crate) fn flush_own(&self, stream: u32) {
        for number in 0..POOLS {
            self.flush_pool(stream, number);
        }
    }

    /// The number of blocks that went back.
    pub(crate) fn flush_pool(&self, stream: u32, number: usize) -> usize {
        let (quick, local) = match self.streams.own_quick(stream, number as u32) {
            Some((quick, local)) if local.blocks() > 0 => (quick, local),
            _ => return 0,
        };
        // Under the lock, so that nobody counts them as live on their way.
        let mut pool = self.pool(number);
        let held = quick.drain(local, &self.slab);
        let count = held.len();
        for index in held {
            let block = self.slab.at(index);
            block.set_state(State::Pending);
            pool.free(self.ground(), index, block);
        }
        // What was idle on one side is now on the other.
        self.note_peak(&mut pool, number);
        count
    }
}
