//! A pool: one use of memory with its own store, quota and figures.
//!
//! The order when a request fits nowhere: join what fences kept apart; memory
//! from the device while the pool is within its slack above the most that ever
//! lived in it; memory moved from free blocks; the device again, up to the
//! quota; at last wait for the streams that still use freed blocks.

use std::collections::VecDeque;

use crate::arena::Ground;
use crate::block::{Block, Index, State, NIL};
use crate::conf::Config;
use crate::error::{Error, Result};
use crate::fence::Fence;
use crate::gate::{Call, Gate, Seal};
use crate::quarantine::Quarantine;
use crate::quick::QUICK_MOST;
use crate::stats::{Peak, Stats, Tally};
use crate::store::{Limits, Store};

/// See the module.
pub struct Pool {
    /// Bytes it may reserve; 0 without limit.
    pub quota: u64,
    /// Its door to the driver.
    pub gate: Gate,
    /// The figures of small requests and of large ones.
    tallies: [Tally; 2],
    /// Of both sides' allocated bytes together.
    pub live_peak: Peak,
    /// Of what small requests asked for.
    pub small_requested_peak: Peak,
    reserved_peak_bytes: u64,
    pending_free_bytes: u64,
    /// Requests that failed for want of memory.
    pub out_of_memory: u64,
    /// Searches that began again.
    pub retries: u64,
    /// Its memory.
    pub store: Store,
    number: usize,
    pending: VecDeque<(Index, Vec<Fence>)>,
    /// Freed blocks kept from reuse.
    pub quarantine: Quarantine,
    config: Config,
}

/// Waiting blocks that a request looks at: many streams and a long queue of frees must
/// not make each request as long.
const REAPED: usize = 8;

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
            tallies: [Tally::default(); 2],
            live_peak: Peak::default(),
            small_requested_peak: Peak::default(),
            reserved_peak_bytes: 0,
            pending_free_bytes: 0,
            out_of_memory: 0,
            retries: 0,
            store: Store::new(g, config, number, addresses, piece)?,
            number: number as usize,
            pending: VecDeque::new(),
            quarantine: Quarantine::new(name),
            config: config.clone(),
        })
    }

    /// Bytes in blocks that are not free, quick bins included.
    #[inline]
    pub fn allocated(&self) -> u64 {
        self.tallies[0].allocated_bytes.current + self.tallies[1].allocated_bytes.current
    }

    /// Bytes in free blocks: what is not spare, live, waiting or in quarantine.
    pub fn free_bytes(&self) -> u64 {
        let waiting = self.tallies[0].waiting_bytes + self.tallies[1].waiting_bytes;
        self.store.in_blocks() - self.allocated() - waiting - self.quarantine.bytes
    }

    /// Bytes that small requests out of the arena asked for, from the pool's side.
    #[inline]
    pub fn small_requested(&self) -> i64 {
        self.tallies[0].requested_bytes.current as i64
    }

    /// Whether what is out of the arenas may be a new peak.
    #[inline]
    pub fn may_pass_peak(&self) -> bool {
        self.allocated() as i64 > self.live_peak.ceiling
            || self.small_requested() > self.small_requested_peak.ceiling
    }

    /// All figures, but for what the streams' quick bins know.
    pub fn stats(&self, g: Ground) -> Stats {
        let mut stats = Stats {
            small: self.tallies[0].side(),
            large: self.tallies[1].side(),
            largest_free_block_bytes: self.largest(g),
            pending_free_bytes: self.pending_free_bytes,
            inactive_split_bytes: self.free_bytes(),
            driver_calls: self.gate.made(),
            sealed_calls: self.gate.sealed_calls.sum(),
            waits: self.gate.open_calls.wait + self.gate.sealed_calls.wait,
            out_of_memory: self.out_of_memory,
            remapped_bytes: self.store.moved,
            allocated_peak_bytes: self.live_peak.bytes as u64,
            reserved_peak_bytes: self.reserved_peak_bytes,
            quota_bytes: self.quota,
            retries: self.retries,
            open: self.gate.open_calls,
            sealed: self.gate.sealed_calls,
        };
        stats.small.requested_bytes.peak = self.small_requested_peak.bytes as u64;
        stats
    }

    /// A live block of `bytes` (already a multiple of the unit) for `stream`.
    #[inline]
    pub fn allocate<'a>(
        &mut self,
        g: Ground<'a>,
        bytes: u64,
        requested: u64,
        stream: u32,
    ) -> Result<(Index, &'a Block)> {
        let which = side_of(bytes);
        if !self.pending.is_empty() || self.quarantine.bytes > 0 {
            self.quarantine.poison(g)?;
            self.reap_of(g, REAPED, false)?;
        }
        let (index, block) = match self.store.arenas[which].take(g, bytes, stream)? {
            Some(found) => found,
            None => {
                let index = self.look_further(g, which, bytes, stream)?;
                (index, g.slab.at(index))
            }
        };
        let size = block.bytes.get();
        block.set_requested(requested, size);
        block.stream.set(stream);
        block.set_state(State::Live);
        self.store.moor(g, index, block);
        self.tallies[which].give(size, requested);
        Ok((index, block))
    }

    #[cold]
    fn look_further(&mut self, g: Ground, which: usize, bytes: u64, stream: u32) -> Result<Index> {
        self.find_more(g, which, bytes, stream).map_err(|error| self.explain(g, error, bytes))
    }

    /// Frees a block whose life has ended (state `Pending`).
    #[inline]
    pub fn free(&mut self, g: Ground, index: Index, block: &Block) {
        self.take_back(g, block);
        self.let_go(g, index, block);
    }

    /// As `free`; `uses` are fences of other streams.
    pub fn free_shared(&mut self, g: Ground, index: Index, mut uses: Vec<Fence>) {
        let block = g.slab.at(index);
        self.take_back(g, block);
        uses.retain(|fence| !g.streams.seen(*fence));
        if uses.is_empty() {
            return self.let_go(g, index, block);
        }
        let size = block.bytes.get();
        self.tallies[side_of(size)].waiting_bytes += size;
        self.pending_free_bytes += size;
        self.pending.push_back((index, uses));
    }

    #[inline]
    fn take_back(&mut self, g: Ground, block: &Block) {
        let size = block.bytes.get();
        self.tallies[side_of(size)].take(size, block.requested_of(size));
        block.fence.set(g.streams.now(block.stream.get()).value);
    }

    /// After all other streams: into quarantine, or free.
    #[inline]
    fn let_go(&mut self, g: Ground, index: Index, block: &Block) {
        if self.config.quarantine_bytes > 0 {
            return self.put_away(g, index);
        }
        self.store.arenas[side_of(block.bytes.get())].put(g, index);
    }

    #[cold]
    fn put_away(&mut self, g: Ground, index: Index) {
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
        self.reap_of(g, self.pending.len(), wait)
    }

    /// Looks at the blocks that have waited longest, each once.
    fn reap_of(&mut self, g: Ground, count: usize, wait: bool) -> Result<()> {
        for _ in 0..count.min(self.pending.len()) {
            let (index, mut fences) = match self.pending.pop_front() {
                Some(first) => first,
                None => return Ok(()),
            };
            let done = self.still(g, &mut fences, wait);
            if done.is_err() || !fences.is_empty() {
                self.pending.push_back((index, fences));
                done?;
                continue;
            }
            let block = g.slab.at(index);
            let size = block.bytes.get();
            self.pending_free_bytes -= size;
            self.tallies[side_of(size)].waiting_bytes -= size;
            self.let_go(g, index, block);
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
                self.gate.pass(Call::Wait)?;
                g.streams.wait(g.phys, fence)?;
            }
            fences.pop();
        }
        Ok(())
    }

    fn find_more(&mut self, g: Ground, which: usize, bytes: u64, stream: u32) -> Result<Index> {
        g.streams.poll(g.phys)?;
        self.reap(g, false)?;
        self.store.settle(g, which)?;
        if let Some((index, _)) = self.store.arenas[which].take(g, bytes, stream)? {
            return Ok(index);
        }
        match self.grow(g, which, bytes, stream) {
            Err(Error::OutOfMemory(_) | Error::Quota(_)) if self.config.wait => {}
            done => return done,
        }
        self.retries += 1;
        while self.forget_oldest(g) {}
        self.reap(g, true)?;
        self.wait_free(g)?;
        self.store.settle(g, which)?;
        match self.store.arenas[which].take(g, bytes, stream)? {
            Some((index, _)) => Ok(index),
            None => self.grow(g, which, bytes, stream),
        }
    }

    /// Waits until nobody uses any free block.
    fn wait_free(&mut self, g: Ground) -> Result<()> {
        for (_, first) in self.store.firsts() {
            for index in walk(g, first).collect::<Vec<_>>() {
                if g.slab.at(index).state() == State::Free && !g.passed(index)? {
                    self.gate.pass(Call::Wait)?;
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
        let live = (self.live_peak.bytes as u64).max(self.allocated() + bytes);
        live + live / 1000 * milli
    }

    fn grow(&mut self, g: Ground, which: usize, bytes: u64, stream: u32) -> Result<Index> {
        let limits = Limits { quota: self.quota, soft: self.soft_limit(bytes) };
        let done = self.store.grow(g, &mut self.gate, which, (bytes, stream), limits);
        self.account();
        done
    }

    /// Books a change of what is reserved.
    fn account(&mut self) {
        let reserved = self.store.reserved_by();
        for (which, tally) in self.tallies.iter_mut().enumerate() {
            tally.reserved_bytes.set(reserved[which]);
            tally.segment.set(self.store.segments(which));
        }
        self.reserved_peak_bytes = self.reserved_peak_bytes.max(reserved.iter().sum());
    }

    /// Gives back memory with nothing in it; bytes given back.
    pub fn trim(&mut self, g: Ground) -> Result<u64> {
        self.reap(g, false)?;
        while self.forget_oldest(g) {}
        let done = self.store.trim(g, &mut self.gate);
        self.account();
        done
    }

    /// Bytes that lie in quick bins, as the streams' threads count them.
    fn in_quick_bins(&self, g: Ground) -> u64 {
        g.streams.slots().map(|slot| g.streams.at(slot).local_of(self.number).held.get()).sum()
    }

    /// The refusal with the pool's state in it.
    fn explain(&self, g: Ground, error: Error, bytes: u64) -> Error {
        let fill = |mut shortage: Box<crate::error::Shortage>| {
            shortage.pool = self.gate.pool;
            shortage.requested = bytes;
            shortage.reserved = self.store.reserved();
            shortage.quick = self.in_quick_bins(g).min(self.allocated());
            shortage.allocated = self.allocated() - shortage.quick;
            shortage.largest_free = self.largest(g);
            shortage.pending = self.pending_free_bytes;
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
