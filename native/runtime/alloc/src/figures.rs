//! What an allocator tells about itself: figures, blocks, findings, and whether its
//! rules hold.
//!
//! From a pool's side a block in a quick bin is out of the arena. Here the pool's
//! figures are put together with the counts that the streams' threads keep.

use crate::allocator::Allocator;
use crate::block::{Block, Index, Word};
use crate::error::Result;
use crate::fence::POOLS;
use crate::pool::{walk, Pool};
use crate::quick::Local;
use crate::stats::Stats;

impl Allocator {
    /// The counts of a pool's quick bins, one for each stream.
    fn locals(&self, number: usize) -> impl Iterator<Item = &Local> {
        self.streams.slots().map(move |slot| self.streams.at(slot).local_of(number))
    }

    /// Books the peaks of live bytes, and says how far the pool and each stream may
    /// go before one can be passed: what is left up to it is shared evenly.
    #[cold]
    pub(crate) fn note_peak(&self, pool: &mut Pool, number: usize) {
        let sharers = i64::from(self.streams.slots().end) + 1;
        let sum = |word: fn(&Local) -> &Word| {
            self.locals(number).fold(0u64, |sum, local| sum.wrapping_add(word(local).get())) as i64
        };
        let held = sum(|local| &local.held);
        let share = pool.live_peak.note(pool.allocated() as i64, held) / sharers;
        let returned = sum(|local| &local.returned);
        let asked = pool.small_requested();
        let asked_share = pool.small_requested_peak.note(asked, returned) / sharers;
        pool.live_peak.ceiling = pool.allocated() as i64 + share;
        pool.small_requested_peak.ceiling = asked + asked_share;
        for local in self.locals(number) {
            local.floor.set((local.held.get() as i64 - share) as u64);
            local.returned_floor.set((local.returned.get() as i64 - asked_share) as u64);
        }
    }

    /// What the sanitizer found in all pools since the last call.
    pub fn findings(&self) -> Vec<String> {
        (0..POOLS)
            .flat_map(|number| std::mem::take(&mut self.pool(number).quarantine.found))
            .collect()
    }

    /// Keeps findings that could not be told, for the next call.
    pub fn keep_findings(&self, mut found: Vec<String>) {
        let kept = &mut self.pool(0).quarantine.found;
        found.append(kept);
        *kept = found;
    }

    /// Bytes that a pool (by its number in `NAMES`) holds from the device.
    pub fn reserved(&self, number: usize) -> u64 {
        self.pool(number).store.reserved()
    }

    /// The figures of a pool, quick bins counted as free.
    pub fn stats(&self, pool: u32) -> Result<Stats> {
        let number = self.pool_number(pool)?;
        let guard = self.pool(number);
        let mut stats = guard.stats(self.ground());
        for local in self.locals(number) {
            local.enter(&mut stats);
        }
        Ok(stats)
    }

    /// Every block with memory: address, bytes, requested, stream, state, pool
    /// and side. For snapshots and pictures.
    pub fn each_block(&self, mut see: impl FnMut(u32, usize, Index, &Block)) {
        for number in 0..POOLS {
            let guard = self.pool(number);
            let g = self.ground();
            for (side, first) in guard.store.firsts() {
                for index in walk(g, first) {
                    see(number as u32, side, index, self.slab.at(index));
                }
            }
        }
    }

    /// Checks every rule that must hold while nothing runs. What fences kept
    /// apart is joined first.
    pub fn check(&self) -> std::result::Result<(), String> {
        let g = self.ground();
        for number in 0..POOLS {
            let mut pool = self.pool(number);
            for side in 0..2 {
                pool.store.settle(g, side).map_err(|error| error.to_string())?;
            }
            crate::check::pool(g, &pool)?;
        }
        Ok(())
    }
}
