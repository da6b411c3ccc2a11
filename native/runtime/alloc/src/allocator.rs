//! The allocator of a device: pools, streams, and the quick way past both.
//!
//! A request up to 1 MiB on a stream of the calling thread is served from that
//! stream's quick bin: no lock, no search. Everything else takes one lock, its
//! pool's. From the pool's side a block in a quick bin is still allocated;
//! `stats` puts the two views together.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::arena::Ground;
use crate::block::{handle_of, parts_of, Index, Slab, State};
use crate::error::{Error, Result};
use crate::fence::{Streams, Uses, POOLS};
use crate::gate::Seal;
use crate::phys::Phys;
use crate::pool::{walk, Config, Pool};
use crate::quick::{class_of, quick_class_of, rounded, NO_CLASS, QUICK_MOST};
use crate::stats::Stats;

/// The pools, in the order of their numbers.
pub const NAMES: [&str; POOLS] = ["weights", "kv", "activations", "scratch", "capture"];

/// A block as the caller gets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Allocation {
    /// Its name; 0 for a request of no bytes.
    pub handle: u64,
    /// Its address; a number of ours on devices without addresses.
    pub address: u64,
    /// Bytes as cut, at least what was asked.
    pub bytes: u64,
    /// The device's memory it lies in, or 0 where only addresses name it.
    pub memory: u64,
    /// Where in that memory it starts, bytes.
    pub offset: u64,
}

/// See the module.
pub struct Allocator {
    slab: Slab,
    streams: Streams,
    uses: Uses,
    phys: Box<dyn Phys>,
    pools: Vec<Mutex<Pool>>,
    config: Config,
    unit_shift: u32,
    unit_mask: u64,
    disabled: AtomicU8,
    abandoned: AtomicU8,
}

impl Allocator {
    /// Pools without memory over a device.
    pub fn new(phys: Box<dyn Phys>, config: Config) -> Result<Allocator> {
        if !config.unit.is_power_of_two() || !(256..=4096).contains(&config.unit) {
            return Err(Error::Invalid(format!(
                "a unit of {} bytes; use 256, 512, 1024, 2048 or 4096",
                config.unit
            )));
        }
        let (slab, streams) = (Slab::new(), Streams::new());
        let g = Ground { slab: &slab, streams: &streams, phys: &*phys };
        let pools = (0..POOLS)
            .map(|number| Pool::new(g, NAMES[number], number as u32, &config).map(Mutex::new))
            .collect::<Result<Vec<_>>>()?;
        let disabled = AtomicU8::new(0);
        Ok(Allocator {
            slab,
            streams,
            uses: Uses::default(),
            phys,
            pools,
            unit_shift: config.unit.trailing_zeros(),
            unit_mask: config.unit - 1,
            config,
            disabled,
            abandoned: AtomicU8::new(0),
        })
    }

    fn ground(&self) -> Ground<'_> {
        Ground { slab: &self.slab, streams: &self.streams, phys: &*self.phys }
    }

    fn pool(&self, number: usize) -> MutexGuard<'_, Pool> {
        self.pools[number].lock().unwrap_or_else(|e| e.into_inner())
    }

    fn pool_number(&self, pool: u32) -> Result<usize> {
        if (pool as usize) < POOLS {
            return Ok(pool as usize);
        }
        Err(Error::Invalid(format!("there is no pool {pool}; the pools are 0 to {}", POOLS - 1)))
    }

    /// After a fault of this code: every later call is refused.
    pub fn disable(&self) {
        self.disabled.store(1, Ordering::Release);
        self.streams.disown();
    }

    /// The device is gone, or gives everything back by itself: `drop` calls it no
    /// more.
    pub fn abandon(&self) {
        self.abandoned.store(1, Ordering::Release);
    }

    fn usable(&self) -> Result<()> {
        if self.disabled.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        Err(Error::Internal("it was disabled after an earlier one".into()))
    }

    /// The streams.
    pub fn streams(&self) -> &Streams {
        &self.streams
    }

    /// The device.
    pub fn phys(&self) -> &dyn Phys {
        &*self.phys
    }

    /// A stream owned by the calling thread, over a timeline at `value`.
    pub fn open_stream(&self, timeline: u64, value: u64) -> Result<u32> {
        self.usable()?;
        // Slots of closed streams whose work has passed are free again.
        self.streams.retire(self.phys())?;
        let quick = if self.config.quarantine_bytes > 0 { 0 } else { self.config.quick_bytes };
        self.streams.open(timeline, value, quick)
    }

    /// Ends a stream; its quick bins empty into the pools.
    pub fn close_stream(&self, stream: u32) -> Result<()> {
        self.usable()?;
        self.flush(stream)?;
        self.streams.close(stream)
    }

    /// Empties the quick bins of a stream of the calling thread.
    pub fn flush(&self, stream: u32) -> Result<()> {
        for number in 0..POOLS {
            self.flush_pool(stream, number)?;
        }
        Ok(())
    }

    /// The number of blocks that went back.
    fn flush_pool(&self, stream: u32, number: usize) -> Result<usize> {
        let held = match self.streams.get(stream)?.quick_of(number) {
            Some((quick, local)) if local.blocks() > 0 => quick.drain(local, &self.slab),
            _ => return Ok(0),
        };
        let mut pool = self.pool(number);
        let count = held.len();
        for index in held {
            self.slab.at(index).set_state(State::Pending);
            pool.free(self.ground(), index, Vec::new())?;
        }
        Ok(count)
    }

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
        let (index, block) = match quick.pop(local, &self.slab, class) {
            Some(found) => found,
            None => return false,
        };
        let size = block.bytes.get();
        local.served.add(1);
        local.served_bytes.add(size);
        block.requested.set(bytes);
        let generation = block.revive();
        out.handle = handle_of(index, generation);
        out.address = block.address.get();
        out.bytes = size;
        out.memory = block.memory.get();
        out.offset = block.offset.get();
        local.held.get() >= local.floor.get() || self.passed_peak(pool, stream)
    }

    #[cold]
    fn passed_peak(&self, pool: u32, stream: u32) -> bool {
        let number = pool as usize % POOLS;
        self.note_peak(&mut self.pool(number), number, stream);
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
        let class = block.class.get();
        let place = block.place.get();
        match self.streams.own_quick(block.stream.get(), place >> 1) {
            Some((quick, local)) => {
                let bytes = block.bytes.get();
                let fits = quick.has_room(local, class, bytes);
                if fits && block.end_life(generation, State::Quick).is_ok() {
                    quick.push(local, (index, block), class);
                    return true;
                }
                false
            }
            None => false,
        }
    }

    /// A block of at least `bytes`, on `stream`. Work submitted to that stream
    /// later may use it at once.
    pub fn allocate(&self, pool: u32, bytes: u64, stream: u32) -> Result<Allocation> {
        let mut got = Allocation::default();
        if self.take_quick(pool, bytes, stream, &mut got) {
            return Ok(got);
        }
        self.usable()?;
        let number = self.pool_number(pool)?;
        self.streams.get(stream)?;
        if bytes == 0 {
            return Ok(got);
        }
        if bytes > 1 << 62 {
            return Err(Error::Invalid(format!("{bytes} bytes are more than any device has")));
        }
        match self.allocate_locked(number, bytes, stream) {
            Err(error @ (Error::OutOfMemory(_) | Error::Quota(_))) => {
                if self.flush_pool(stream, number)? == 0 {
                    return Err(error);
                }
                self.allocate_locked(number, bytes, stream)
            }
            done => done,
        }
    }

    fn allocate_locked(&self, number: usize, bytes: u64, stream: u32) -> Result<Allocation> {
        let g = self.ground();
        let size = rounded(bytes, self.config.unit);
        let mut pool = self.pool(number);
        let index = pool.allocate(g, size, bytes, stream)?;
        let block = self.slab.at(index);
        let (memory, offset) = pool.store.memory_of(g, index);
        block.memory.set(memory);
        block.offset.set(offset);
        let quick = size <= QUICK_MOST;
        block.class.set(if quick { class_of(size >> self.unit_shift) as u32 } else { NO_CLASS });
        self.note_peak(&mut pool, number, stream);
        Ok(Allocation {
            handle: handle_of(index, block.generation()),
            address: block.address.get(),
            bytes: block.bytes.get(),
            memory,
            offset,
        })
    }

    /// Bytes in the quick bins of all streams of a pool, and in blocks.
    fn held(&self, number: usize) -> (u64, u64) {
        let locals = self.streams.slots().map(|slot| self.streams.at(slot).local_of(number));
        locals.fold((0, 0), |(bytes, blocks), local| {
            (bytes + local.held.get(), blocks + local.blocks())
        })
    }

    /// Books the peak of live bytes, and says at which level of its quick bin
    /// the calling stream would pass it.
    fn note_peak(&self, pool: &mut Pool, number: usize, stream: u32) {
        let in_blocks = pool.allocated();
        let local = self.streams.at(stream).local_of(number);
        let peak = pool.stats.allocated_peak_bytes;
        if in_blocks <= peak {
            local.floor.set(0);
            return;
        }
        let (held, _) = self.held(number);
        let live = in_blocks - held.min(in_blocks);
        let peak = peak.max(live);
        pool.stats.allocated_peak_bytes = peak;
        local.floor.set((local.held.get() + live).saturating_sub(peak));
    }

    /// Frees a block. Its stream may get it again at once, others when all work
    /// submitted until now has passed.
    pub fn free(&self, handle: u64) -> Result<()> {
        if handle == 0 || self.give_quick(handle) {
            return Ok(());
        }
        self.usable()?;
        let (index, generation) = parts_of(handle);
        let bad = |why| Error::BadHandle { handle, why };
        let block = self.slab.get(index).ok_or_else(|| bad("no block has this number"))?;
        block.end_life(generation, State::Pending).map_err(bad)?;
        let uses = if block.shared.get() == 0 {
            Vec::new()
        } else {
            block.shared.set(0);
            self.uses.end(&self.streams, index)
        };
        let number = (block.place.get() >> 1) as usize % POOLS;
        self.pool(number).free(self.ground(), index, uses)
    }

    /// Says that work on another stream uses the block: a later free waits for
    /// what that stream has been given until then.
    pub fn used_on(&self, handle: u64, stream: u32) -> Result<()> {
        self.usable()?;
        self.streams.get(stream)?;
        let (index, block) = self.live(handle)?;
        if block.stream.get() != stream {
            self.uses.add(index, stream);
            block.shared.set(1);
            block.class.set(NO_CLASS);
        }
        Ok(())
    }

    fn live(&self, handle: u64) -> Result<(Index, &crate::block::Block)> {
        let (index, generation) = parts_of(handle);
        let block = self
            .slab
            .get(index)
            .ok_or(Error::BadHandle { handle, why: "no block has this number" })?;
        block.is_live(generation).map_err(|why| Error::BadHandle { handle, why })?;
        Ok((index, block))
    }

    /// What a live handle names.
    pub fn describe(&self, handle: u64) -> Result<Allocation> {
        let (_, block) = self.live(handle)?;
        Ok(Allocation {
            handle,
            address: block.address.get(),
            bytes: block.bytes.get(),
            memory: block.memory.get(),
            offset: block.offset.get(),
        })
    }

    /// Bytes that a pool may reserve; 0 without limit.
    pub fn set_quota(&self, pool: u32, bytes: u64) -> Result<()> {
        let number = self.pool_number(pool)?;
        self.pool(number).quota = bytes;
        Ok(())
    }

    /// From now on the driver is refused to all pools, or its calls counted.
    pub fn seal(&self, seal: Seal) {
        for number in 0..POOLS {
            self.pool(number).set_seal(seal);
        }
    }

    /// What the sanitizer found in all pools since the last call.
    pub fn findings(&self) -> Vec<String> {
        (0..POOLS)
            .flat_map(|number| std::mem::take(&mut self.pool(number).quarantine.found))
            .collect()
    }

    /// Gives memory with nothing in it back to the device; bytes given back.
    pub fn trim(&self) -> Result<u64> {
        self.usable()?;
        for slot in self.streams.slots() {
            if self.streams.get(slot).is_ok() {
                self.flush(slot)?;
            }
        }
        (0..POOLS).map(|number| self.pool(number).trim(self.ground())).sum()
    }

    /// Bytes that a pool (by its number in `NAMES`) holds from the device.
    pub fn reserved(&self, number: usize) -> u64 {
        self.pool(number).store.reserved()
    }

    /// The figures of a pool, quick bins counted as free.
    pub fn stats(&self, pool: u32) -> Result<Stats> {
        let number = self.pool_number(pool)?;
        let (held, blocks) = self.held(number);
        let guard = self.pool(number);
        let g = self.ground();
        let mut stats = guard.stats;
        stats.largest_free_block_bytes = guard.largest(g);
        stats.driver_calls = guard.gate.calls;
        stats.sealed_calls = guard.gate.sealed_calls;
        stats.waits = guard.gate.waits;
        stats.remapped_bytes = guard.store.moved;
        stats.quota_bytes = guard.quota;
        stats.inactive_split_bytes =
            guard.store.arenas.iter().map(|arena| arena.bins.bytes).sum::<u64>() + held;
        for side in 0..2 {
            let segments = guard.store.segments(side);
            let figure =
                if side == 0 { &mut stats.small.segment } else { &mut stats.large.segment };
            figure.current = segments;
        }
        // Nobody counts what was asked, to keep the quick way short: the blocks know.
        let mut asked = [0, 0];
        for (side, first) in guard.store.firsts() {
            let live = walk(g, first).map(|i| self.slab.at(i)).filter(|b| b.state() == State::Live);
            asked[side] += live.map(|block| block.requested.get()).sum::<u64>();
        }
        drop(guard);
        stats.small.requested_bytes.current = asked[0];
        stats.large.requested_bytes.current = asked[1];
        let small = &mut stats.small;
        for slot in self.streams.slots() {
            let local = self.streams.at(slot).local_of(number);
            let (served, bytes) = (local.served.get(), local.served_bytes.get());
            small.allocation.allocated += served;
            small.allocation.freed += served;
            small.allocated_bytes.allocated += bytes;
            small.allocated_bytes.freed += bytes;
        }
        small.allocation.freed += blocks;
        small.allocation.current -= blocks.min(small.allocation.current);
        small.allocated_bytes.freed += held;
        small.allocated_bytes.current -= held.min(small.allocated_bytes.current);
        Ok(stats)
    }

    /// Every block with memory: address, bytes, requested, stream, state, pool
    /// and side. For snapshots and pictures.
    pub fn each_block(&self, mut see: impl FnMut(u32, usize, Index, &crate::block::Block)) {
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

impl Drop for Allocator {
    fn drop(&mut self) {
        if self.abandoned.load(Ordering::Acquire) != 0 {
            return;
        }
        for number in 0..POOLS {
            let mut pool = self.pools[number].lock().unwrap_or_else(|e| e.into_inner());
            let g = Ground { slab: &self.slab, streams: &self.streams, phys: &*self.phys };
            // The device may be lost; there is nobody left to tell.
            let _ = pool.store.clear(g);
        }
    }
}
