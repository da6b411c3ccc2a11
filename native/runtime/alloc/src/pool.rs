//! A pool: one use of memory with its own store, quota and figures.
//!
//! The order when a request fits nowhere: join what fences kept apart; memory
//! from the device while the pool is within its slack above the most that ever
//! lived in it; memory moved from free blocks; the device again, up to the
//! quota; at last wait for the streams that still use freed blocks.

use crate::arena::Ground;
use crate::block::{Index, State, NIL};
use crate::error::{Error, Result};
use crate::fence::Fence;
use crate::gate::{Gate, Seal};
use crate::quarantine::Quarantine;
use crate::quick::QUICK_MOST;
use crate::stats::{Side, Stats};
use crate::store::{Limits, Store};

/// What can be set. The defaults are measured: see `benchmarks/runtime`.
#[derive(Clone, Debug)]
pub struct Config {
    /// Blocks are multiples of it, bytes; a power of two.
    pub unit: u64,
    /// Use address mapping where the device has it.
    pub mapping: bool,
    /// Bytes of a piece; 0 takes the device's least.
    pub piece: u64,
    /// Addresses reserved for an arena, bytes.
    pub addresses: u64,
    /// With mapping: thousandths above the peak of live bytes that are taken
    /// from the device before free memory is moved.
    pub slack_milli: u64,
    /// Without: thousandths above the peak of live bytes before empty segments
    /// are given back to make room for a new one.
    pub plain_slack_milli: u64,
    /// Without: see `Arena::whole_milli`.
    pub whole_milli: u64,
    /// Bytes that the quick bins of a stream may hold in a pool.
    pub quick_bytes: u64,
    /// Freed bytes kept from reuse, and poisoned; 0 without sanitizer.
    pub quarantine_bytes: u64,
    /// Wait on the host for free blocks before a request fails.
    pub wait: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            unit: 512,
            mapping: true,
            piece: 0,
            addresses: 1 << 40,
            slack_milli: 20,
            plain_slack_milli: 100,
            whole_milli: 1600,
            quick_bytes: 8 << 20,
            quarantine_bytes: 0,
            wait: true,
        }
    }
}

/// See the module.
pub struct Pool {
    /// Bytes it may reserve; 0 without limit.
    pub quota: u64,
    /// Its door to the driver.
    pub gate: Gate,
    /// The figures that its lock guards.
    pub stats: Stats,
    /// Its memory.
    pub store: Store,
    pending: Vec<(Index, Vec<Fence>)>,
    /// Freed blocks kept from reuse.
    pub quarantine: Quarantine,
    config: Config,
}

fn side_of(bytes: u64) -> usize {
    usize::from(bytes > QUICK_MOST)
}

impl Pool {
    /// A pool without memory. `number` marks its blocks.
    pub fn new(g: Ground, name: &'static str, number: u32, config: &Config) -> Result<Pool> {
        let least = g.phys.piece_bytes();
        let piece = if config.piece == 0 { least } else { config.piece };
        let mapped = config.mapping && least > 0;
        if mapped && piece % least != 0 {
            return Err(Error::Invalid(format!(
                "a piece of {piece} bytes is no multiple of the device's {least}"
            )));
        }
        let addresses = if mapped { config.addresses } else { 0 };
        Ok(Pool {
            quota: 0,
            gate: Gate::new(name),
            stats: Stats::default(),
            store: Store::new(g, config, number, addresses, piece)?,
            pending: Vec::new(),
            quarantine: Quarantine::new(name),
            config: config.clone(),
        })
    }

    /// Bytes in blocks that are not free, quick bins included.
    pub fn allocated(&self) -> u64 {
        self.stats.small.allocated_bytes.current + self.stats.large.allocated_bytes.current
    }

    fn side(&mut self, which: usize) -> &mut Side {
        if which == 0 {
            &mut self.stats.small
        } else {
            &mut self.stats.large
        }
    }

    /// A live block of `bytes` (already a multiple of the unit) for `stream`.
    pub fn allocate(
        &mut self,
        g: Ground,
        bytes: u64,
        requested: u64,
        stream: u32,
    ) -> Result<Index> {
        let which = side_of(bytes);
        if !self.pending.is_empty() || self.quarantine.bytes > 0 {
            self.reap(g, false)?;
        }
        let index = match self.store.arenas[which].take(g, bytes, stream)? {
            Some(index) => index,
            None => match self.find_more(g, which, bytes, stream) {
                Ok(index) => index,
                Err(error) => {
                    self.stats.out_of_memory += 1;
                    return Err(self.explain(g, error, bytes));
                }
            },
        };
        let block = g.slab.at(index);
        block.requested.set(requested);
        block.stream.set(stream);
        block.set_state(State::Live);
        let size = block.bytes.get();
        let side = self.side(which);
        side.allocation.add(1);
        side.allocated_bytes.add(size);
        side.active_bytes.add(size);
        Ok(index)
    }

    /// Frees a block whose life has ended (state `Pending`). `uses` are fences
    /// of other streams.
    pub fn free(&mut self, g: Ground, index: Index, mut uses: Vec<Fence>) -> Result<()> {
        let block = g.slab.at(index);
        let size = block.bytes.get();
        let side = self.side(side_of(size));
        side.allocation.sub(1);
        side.allocated_bytes.sub(size);
        block.fence.set(g.streams.now(block.stream.get()).value);
        uses.retain(|fence| !g.streams.seen(*fence));
        if uses.is_empty() {
            self.let_go(g, index);
        } else {
            self.stats.pending_free_bytes += size;
            self.pending.push((index, uses));
        }
        Ok(())
    }

    /// After all other streams: into quarantine, or free.
    fn let_go(&mut self, g: Ground, index: Index) {
        let size = g.slab.at(index).bytes.get();
        self.side(side_of(size)).active_bytes.sub(size);
        if self.config.quarantine_bytes == 0 {
            self.store.arenas[side_of(size)].put(g, index);
            return;
        }
        self.quarantine.push(g, index);
        while self.quarantine.bytes > self.config.quarantine_bytes && self.forget_oldest(g) {}
    }

    /// Ends the quarantine of the block longest in it.
    fn forget_oldest(&mut self, g: Ground) -> bool {
        match self.quarantine.pop(g) {
            Some(index) => {
                let size = g.slab.at(index).bytes.get();
                self.store.arenas[side_of(size)].put(g, index);
                true
            }
            None => false,
        }
    }

    /// Frees what other streams are done with; with `wait`, all of it.
    pub fn reap(&mut self, g: Ground, wait: bool) -> Result<()> {
        self.quarantine.poison(g)?;
        let mut waiting = std::mem::take(&mut self.pending);
        while let Some((index, mut fences)) = waiting.pop() {
            match self.still(g, &mut fences, wait) {
                Ok(()) if fences.is_empty() => {
                    self.stats.pending_free_bytes -= g.slab.at(index).bytes.get();
                    self.let_go(g, index);
                }
                Ok(()) => self.pending.push((index, fences)),
                Err(error) => {
                    self.pending.push((index, fences));
                    self.pending.append(&mut waiting);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Keeps the fences that have not passed.
    fn still(&mut self, g: Ground, fences: &mut Vec<Fence>, wait: bool) -> Result<()> {
        while let Some(&fence) = fences.last() {
            if !g.streams.passed(g.phys, fence)? {
                if !wait {
                    return Ok(());
                }
                self.gate.pass("wait")?;
                g.streams.wait(g.phys, fence)?;
            }
            fences.pop();
        }
        Ok(())
    }

    fn find_more(&mut self, g: Ground, which: usize, bytes: u64, stream: u32) -> Result<Index> {
        g.streams.poll(g.phys)?;
        self.store.settle(g, which)?;
        if let Some(index) = self.store.arenas[which].take(g, bytes, stream)? {
            return Ok(index);
        }
        match self.grow(g, which, bytes, stream) {
            Err(Error::OutOfMemory(_) | Error::Quota(_)) if self.config.wait => {}
            done => return done,
        }
        while self.forget_oldest(g) {}
        self.reap(g, true)?;
        self.wait_free(g)?;
        self.store.settle(g, which)?;
        match self.store.arenas[which].take(g, bytes, stream)? {
            Some(index) => Ok(index),
            None => self.grow(g, which, bytes, stream),
        }
    }

    /// Waits until nobody uses any free block.
    fn wait_free(&mut self, g: Ground) -> Result<()> {
        for (_, first) in self.store.firsts() {
            for index in walk(g, first).collect::<Vec<_>>() {
                if g.slab.at(index).state() == State::Free && !g.passed(index)? {
                    self.gate.pass("wait")?;
                    g.streams.wait(g.phys, g.fence(index))?;
                }
            }
        }
        Ok(())
    }

    /// Bytes the pool may hold before it looks for memory it already has.
    fn soft_limit(&self, bytes: u64) -> u64 {
        let milli = if self.store.is_mapped() {
            self.config.slack_milli
        } else {
            self.config.plain_slack_milli
        };
        let live = self.stats.allocated_peak_bytes.max(self.allocated() + bytes);
        live + live / 1000 * milli
    }

    fn grow(&mut self, g: Ground, which: usize, bytes: u64, stream: u32) -> Result<Index> {
        let limits = Limits { quota: self.quota, soft: self.soft_limit(bytes) };
        let before = self.store.reserved_by();
        let done = self.store.grow(g, &mut self.gate, which, (bytes, stream), limits);
        self.account(before);
        done
    }

    /// Books a change of what is reserved.
    fn account(&mut self, before: [u64; 2]) {
        let now = self.store.reserved_by();
        for which in 0..2 {
            let figure = &mut self.side(which).reserved_bytes;
            figure.add(now[which].saturating_sub(before[which]));
            figure.sub(before[which].saturating_sub(now[which]));
        }
        let reserved = now.iter().sum();
        self.stats.reserved_peak_bytes = self.stats.reserved_peak_bytes.max(reserved);
    }

    /// Gives back memory with nothing in it; bytes given back.
    pub fn trim(&mut self, g: Ground) -> Result<u64> {
        self.reap(g, false)?;
        while self.forget_oldest(g) {}
        let before = self.store.reserved_by();
        let done = self.store.trim(g, &mut self.gate);
        self.account(before);
        done
    }

    /// The refusal with the pool's state in it.
    fn explain(&self, g: Ground, error: Error, bytes: u64) -> Error {
        let fill = |mut shortage: Box<crate::error::Shortage>| {
            shortage.pool = self.gate.pool;
            shortage.requested = bytes;
            shortage.reserved = self.store.reserved();
            shortage.allocated = self.allocated();
            shortage.largest_free = self.largest(g);
            shortage.pending = self.stats.pending_free_bytes;
            shortage.quota = self.quota;
            shortage
        };
        match error {
            Error::OutOfMemory(shortage) => Error::OutOfMemory(fill(shortage)),
            Error::Quota(shortage) => Error::Quota(fill(shortage)),
            other => other,
        }
    }

    /// The largest free block.
    pub fn largest(&self, g: Ground) -> u64 {
        self.store.arenas.iter().map(|arena| arena.bins.largest(g.slab)).max().unwrap_or(0)
    }

    /// Shuts or opens the door to the driver.
    pub fn set_seal(&mut self, seal: Seal) {
        self.gate.seal = seal;
        // Nothing goes back any more, so nothing is kept whole for it.
        let open = seal == Seal::Open && !self.store.is_mapped();
        self.store.arenas[1].whole_milli = if open { self.config.whole_milli } else { u64::MAX };
    }
}

/// The blocks from `first` on.
pub fn walk(g: Ground<'_>, first: Index) -> impl Iterator<Item = Index> + '_ {
    let mut index = first;
    std::iter::from_fn(move || {
        if index == NIL {
            return None;
        }
        let here = index;
        index = g.slab.at(here).after.get();
        Some(here)
    })
}
