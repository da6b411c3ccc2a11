//! The allocator of a device: its pools and streams.
//!
//! A request up to 1 MiB on a stream of the calling thread is served from that
//! stream's quick bin: no lock, no search. Everything else takes one lock, its
//! pool's. `shortcut` is the first way, `figures` puts what both count together.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::arena::Ground;
use crate::block::{parts_of, Block, Index, Slab, State};
use crate::conf::Config;
use crate::error::{Error, Result};
use crate::fence::{Streams, Uses, POOLS};
use crate::gate::Seal;
use crate::lock::locked;
use crate::phys::Phys;
use crate::pool::Pool;
use crate::quick::{cut_of, NO_CLASS};

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
    pub(crate) slab: Slab,
    pub(crate) streams: Streams,
    uses: Uses,
    phys: Box<dyn Phys>,
    pools: Vec<Mutex<Pool>>,
    config: Config,
    pub(crate) unit_shift: u32,
    pub(crate) unit_mask: u64,
    /// Whether handles name the device's memory, see `block::Anchor`.
    pub(crate) anchored: bool,
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
        let anchored = !config.mapping || phys.piece_bytes() == 0;
        let disabled = AtomicU8::new(0);
        Ok(Allocator {
            slab,
            streams,
            uses: Uses::default(),
            phys,
            pools,
            unit_shift: config.unit.trailing_zeros(),
            unit_mask: config.unit - 1,
            anchored,
            config,
            disabled,
            abandoned: AtomicU8::new(0),
        })
    }

    pub(crate) fn ground(&self) -> Ground<'_> {
        Ground { slab: &self.slab, streams: &self.streams, phys: &*self.phys }
    }

    pub(crate) fn pool(&self, number: usize) -> MutexGuard<'_, Pool> {
        locked(&self.pools[number])
    }

    pub(crate) fn pool_number(&self, pool: u32) -> Result<usize> {
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

    /// A block of at least `bytes`, on `stream`. Work submitted to that stream
    /// later may use it at once.
    pub fn allocate(&self, pool: u32, bytes: u64, stream: u32) -> Result<Allocation> {
        let mut got = Allocation::default();
        if !self.take_quick(pool, bytes, stream, &mut got) {
            self.allocate_by_lock(pool, bytes, stream, &mut got)?;
        }
        Ok(got)
    }

    /// As `allocate`, past the quick bin.
    pub fn allocate_by_lock(
        &self,
        pool_of: u32,
        bytes: u64,
        stream: u32,
        out: &mut Allocation,
    ) -> Result<()> {
        self.usable()?;
        let number = self.pool_number(pool_of)?;
        self.streams.get(stream)?;
        if bytes == 0 {
            *out = Allocation::default();
            return Ok(());
        }
        if bytes > 1 << 62 {
            return Err(Error::Invalid(format!("{bytes} bytes are more than any device has")));
        }
        let (size, class) = cut_of(bytes, self.unit_shift);
        let mut pool = self.pool(number);
        match pool.allocate(self.ground(), size, bytes, stream) {
            Ok((index, block)) => {
                block.class.set(class);
                if pool.may_pass_peak() {
                    self.note_peak(&mut pool, number);
                }
                drop(pool);
                self.tell(index, block, (block.bytes.get(), block.generation()), out);
                Ok(())
            }
            Err(error @ (Error::OutOfMemory(_) | Error::Quota(_))) => {
                drop(pool);
                if !self.found_idle(number, &error) {
                    self.pool(number).out_of_memory += 1;
                    return Err(error);
                }
                self.pool(number).retries += 1;
                self.allocate_by_lock(pool_of, bytes, stream, out)
            }
            Err(other) => Err(other),
        }
    }

    /// Whether what is lacking may have been found: in the quick bins of the calling
    /// thread's streams, or else, where the device is full, in other pools that use
    /// less than they hold. Each call that says so has taken something from there.
    #[cold]
    fn found_idle(&self, number: usize, error: &Error) -> bool {
        let flush = |pool| self.streams.slots().map(|s| self.flush_pool(s, pool)).sum::<usize>();
        if flush(number) > 0 {
            return true;
        }
        let full = matches!(error, Error::OutOfMemory(_));
        full && (0..POOLS).filter(|&other| other != number).any(|other| {
            flush(other);
            let mut pool = self.pool(other);
            let open = pool.gate.seal == Seal::Open;
            // A device that does not take it back has said so elsewhere.
            open && pool.trim(self.ground()).map_or(false, |bytes| bytes > 0)
        })
    }

    /// Frees a block. Its stream may get it again at once, others when all work
    /// submitted until now has passed.
    pub fn free(&self, handle: u64) -> Result<()> {
        if self.give_quick(handle) {
            return Ok(());
        }
        self.free_by_lock(handle)
    }

    /// As `free`, past the quick bin.
    pub fn free_by_lock(&self, handle: u64) -> Result<()> {
        if handle == 0 {
            return Ok(());
        }
        self.usable()?;
        let (index, generation) = parts_of(handle);
        let bad = |why| Error::BadHandle { handle, why };
        let block = self.slab.get(index).ok_or_else(|| bad("no block has this number"))?;
        block.end_life(generation, State::Pending).map_err(bad)?;
        let number = (block.place.get() >> 1) as usize % POOLS;
        if block.shared.get() == 0 {
            self.pool(number).free(self.ground(), index, block);
        } else {
            block.shared.set(0);
            let uses = self.uses.end(&self.streams, index);
            self.pool(number).free_shared(self.ground(), index, uses);
        }
        Ok(())
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

    /// The other streams that a live block was used on.
    pub fn users(&self, handle: u64) -> Vec<u32> {
        match self.live(handle) {
            Ok((index, block)) if block.shared.get() != 0 => self.uses.of(index),
            _ => Vec::new(),
        }
    }

    fn live(&self, handle: u64) -> Result<(Index, &Block)> {
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
        let (index, block) = self.live(handle)?;
        let mut found = Allocation::default();
        self.tell(index, block, (block.bytes.get(), parts_of(handle).1), &mut found);
        Ok(found)
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

    /// Gives memory with nothing in it back to the device; bytes given back.
    pub fn trim(&self) -> Result<u64> {
        self.usable()?;
        for slot in self.streams.slots() {
            self.flush_own(slot);
        }
        (0..POOLS).map(|number| self.pool(number).trim(self.ground())).sum()
    }
}

impl Drop for Allocator {
    fn drop(&mut self) {
        if self.abandoned.load(Ordering::Acquire) != 0 {
            return;
        }
        for number in 0..POOLS {
            let mut pool = locked(&self.pools[number]);
            let g = Ground { slab: &self.slab, streams: &self.streams, phys: &*self.phys };
            // The device may be lost; there is nobody left to tell.
            let _ = pool.store.clear(g);
        }
    }
}
