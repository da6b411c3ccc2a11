//! Streams as the allocator sees them, and the fences that frees carry.
//!
//! A stream is a timeline whose work runs in order; `submitted` is the value
//! that its last submission will signal. A fence is a stream's slot and a
//! value. When a stream is destroyed its slot stays until the last value has
//! passed, so a fence never names a dead stream; a slot that is used again
//! counts on from where it stood, so old fences stay passed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::Mutex;

use crate::block::{Index, Word};
use crate::error::{Error, Result};
use crate::lock::locked;
use crate::phys::{Phys, PhysError};
use crate::quick::{Local, Quick, Shelf};

/// The most streams alive at a time.
pub const STREAMS: usize = 1024;
/// Pools of an allocator.
pub const POOLS: usize = 5;
/// A power of two, so that a pool's number needs no check; the others stay empty.
const SHELVES: usize = 8;

/// A moment on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The stream's slot.
    pub stream: u32,
    /// In the slot's own count.
    pub value: u64,
}

/// One slot.
pub struct Stream {
    timeline: AtomicU64,
    base: Word,
    submitted: AtomicU64,
    completed: AtomicU64,
    alive: AtomicBool,
    shelves: [Shelf; SHELVES],
}

/// A word that tells threads apart: the address of a thread's own storage.
#[inline]
pub fn thread_key() -> u64 {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    {
        let key: u64;
        // SAFETY: the first word of the thread block is its own address, by
        // the x86-64 ELF thread-local storage convention.
        unsafe {
            std::arch::asm!("mov {}, fs:0", out(reg) key,
                            options(nostack, pure, readonly, preserves_flags));
        }
        key
    }
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    {
        thread_local!(static HERE: u8 = const { 0 });
        HERE.with(|here| here as *const u8 as u64)
    }
}

impl Stream {
    /// As `Streams::advance`, from many threads: the largest value stays.
    pub fn advance_to(&self, value: u64) {
        self.submitted.fetch_max(value.wrapping_add(self.base.get()), Ordering::AcqRel);
    }

    /// The counts of a pool's quick bins, for any thread to read.
    pub fn local_of(&self, pool: usize) -> &Local {
        &self.shelves[pool % SHELVES].local
    }

    /// The value of the last submission, in the slot's count.
    pub fn last(&self) -> u64 {
        self.submitted.load(Ordering::Acquire)
    }
}

/// All slots.
pub struct Streams {
    /// The key of the thread whose quick bins a slot has; 0 without.
    owners: [AtomicU64; STREAMS],
    slots: [AtomicPtr<Stream>; STREAMS],
    length: AtomicU32,
    change: Mutex<Vec<u32>>,
}

impl Streams {
    /// No streams.
    pub fn new() -> Self {
        Streams {
            owners: std::array::from_fn(|_| AtomicU64::default()),
            slots: std::array::from_fn(|_| AtomicPtr::default()),
            length: AtomicU32::new(0),
            change: Mutex::new(Vec::new()),
        }
    }

    /// A stream over a timeline that stands at `value`. Owned by the calling
    /// thread. Slot numbers start at 0.
    pub fn open(&self, timeline: u64, value: u64, quick_limit: u64) -> Result<u32> {
        let mut retired = locked(&self.change);
        if let Some(slot) = retired.pop() {
            let stream = self.at(slot);
            stream.base.set(stream.last().wrapping_sub(value));
            stream.timeline.store(timeline, Ordering::Release);
            stream.alive.store(true, Ordering::Release);
            self.owner(slot).store(thread_key(), Ordering::Release);
            return Ok(slot);
        }
        let slot = self.length.load(Ordering::Relaxed);
        if slot as usize == STREAMS {
            return Err(Error::Invalid(format!(
                "{STREAMS} streams are open, which is the most; destroy one first"
            )));
        }
        let stream = Box::new(Stream {
            timeline: AtomicU64::new(timeline),
            base: Word::default(),
            submitted: AtomicU64::new(value),
            completed: AtomicU64::new(value),
            alive: AtomicBool::new(true),
            shelves: std::array::from_fn(|_| Shelf::new(quick_limit)),
        });
        self.slots[slot as usize].store(Box::into_raw(stream), Ordering::Release);
        self.owner(slot).store(thread_key(), Ordering::Release);
        self.length.store(slot + 1, Ordering::Release);
        Ok(slot)
    }

    #[inline(always)]
    fn owner(&self, slot: u32) -> &AtomicU64 {
        &self.owners[slot as usize % STREAMS]
    }

    /// The slot of a number that came from `open`.
    #[inline]
    pub fn at(&self, slot: u32) -> &Stream {
        // SAFETY: slots below the length are published and live as long as self.
        unsafe { &*self.slots[slot as usize % STREAMS].load(Ordering::Acquire) }
    }

    /// The living stream of any number, or why there is none.
    #[inline]
    pub fn get(&self, slot: u32) -> Result<&Stream> {
        if slot < self.length.load(Ordering::Acquire) {
            let stream = self.at(slot);
            if stream.alive.load(Ordering::Relaxed) {
                return Ok(stream);
            }
        }
        Err(no_stream(slot))
    }

    /// The quick bins of a stream and pool of any number, when the stream is
    /// the calling thread's.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub fn own_quick(&self, slot: u32, pool: u32) -> Option<(&mut Quick, &Local)> {
        if slot as usize >= STREAMS || self.owner(slot).load(Ordering::Relaxed) != thread_key() {
            return None;
        }
        // SAFETY: this thread has published the slot, only it has this key, and
        // no caller keeps the reference across another call of the allocator.
        Some(unsafe { self.at(slot).shelves[pool as usize % SHELVES].open() })
    }

    /// No thread owns a stream's quick bins any more.
    pub fn disown(&self) {
        for slot in self.slots() {
            self.owner(slot).store(0, Ordering::Release);
        }
    }

    /// Every slot that was ever open.
    pub fn slots(&self) -> std::ops::Range<u32> {
        0..self.length.load(Ordering::Acquire)
    }

    /// Says that the stream's work up to its timeline's `value` is submitted.
    pub fn advance(&self, slot: u32, value: u64) -> Result<()> {
        let stream = self.get(slot)?;
        let value = value.wrapping_add(stream.base.get());
        if value < stream.last() {
            return Err(Error::Invalid(format!("stream {slot} cannot go back to {value}")));
        }
        stream.submitted.store(value, Ordering::Release);
        Ok(())
    }

    /// Ends a stream; its fences stay until they pass.
    pub fn close(&self, slot: u32) -> Result<()> {
        let stream = self.get(slot)?;
        self.owner(slot).store(0, Ordering::Release);
        stream.alive.store(false, Ordering::Release);
        Ok(())
    }

    /// The timelines of closed streams whose work has all passed; their slots
    /// become free for new streams.
    pub fn retire(&self, phys: &dyn Phys) -> Result<Vec<u64>> {
        let mut retired = locked(&self.change);
        let mut timelines = Vec::new();
        for slot in self.slots() {
            let stream = self.at(slot);
            let open = stream.alive.load(Ordering::Acquire) || retired.contains(&slot);
            if !open && self.passed(phys, Fence { stream: slot, value: stream.last() })? {
                timelines.push(stream.timeline.load(Ordering::Acquire));
                retired.push(slot);
            }
        }
        Ok(timelines)
    }

    /// The moment at which all of a stream's work until now is done.
    pub fn now(&self, slot: u32) -> Fence {
        Fence { stream: slot, value: self.at(slot).last() }
    }

    /// Whether a fence has passed, as far as was seen: one load.
    #[inline]
    pub fn seen(&self, fence: Fence) -> bool {
        self.at(fence.stream).completed.load(Ordering::Acquire) >= fence.value
    }

    /// Whether a fence has passed, asking the device when that is not known.
    pub fn passed(&self, phys: &dyn Phys, fence: Fence) -> Result<bool> {
        if self.seen(fence) {
            return Ok(true);
        }
        let stream = self.at(fence.stream);
        let timeline = stream.timeline.load(Ordering::Acquire);
        let value = phys.completed(timeline).map_err(device)?;
        let value = value.wrapping_add(stream.base.get());
        stream.completed.fetch_max(value, Ordering::AcqRel);
        Ok(self.seen(fence))
    }

    /// Asks the device how far every stream with work in flight is.
    pub fn poll(&self, phys: &dyn Phys) -> Result<()> {
        for slot in self.slots() {
            self.passed(phys, self.now(slot))?;
        }
        Ok(())
    }

    /// Waits on the host until a fence has passed: a driver call.
    pub fn wait(&self, phys: &dyn Phys, fence: Fence) -> Result<()> {
        if self.passed(phys, fence)? {
            return Ok(());
        }
        let stream = self.at(fence.stream);
        let timeline = stream.timeline.load(Ordering::Acquire);
        phys.wait(timeline, fence.value.wrapping_sub(stream.base.get())).map_err(device)?;
        stream.completed.fetch_max(fence.value, Ordering::AcqRel);
        Ok(())
    }
}

impl Default for Streams {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        for slot in self.slots.iter() {
            let stream = slot.load(Ordering::Acquire);
            if !stream.is_null() {
                // SAFETY: made by Box::into_raw in `open`, dropped once.
                drop(unsafe { Box::from_raw(stream) });
            }
        }
    }
}

#[cold]
fn no_stream(slot: u32) -> Error {
    Error::Invalid(format!("stream {slot} is not open"))
}

/// A device's refusal as ours.
pub fn device(error: PhysError) -> Error {
    match error {
        PhysError::NoMemory(text) | PhysError::Failed(text) => Error::Device(text),
    }
}

/// Which other streams used a live block.
#[derive(Default)]
pub struct Uses(Mutex<HashMap<Index, Vec<u32>>>);

impl Uses {
    /// Notes a use; the block's `shared` says that there is one.
    pub fn add(&self, index: Index, stream: u32) {
        let mut uses = locked(&self.0);
        let streams = uses.entry(index).or_default();
        if !streams.contains(&stream) {
            streams.push(stream);
        }
    }

    /// The streams that used a live block.
    pub fn of(&self, index: Index) -> Vec<u32> {
        locked(&self.0).get(&index).cloned().unwrap_or_default()
    }

    /// The uses of a block that is freed now, as fences of this moment.
    pub fn end(&self, streams: &Streams, index: Index) -> Vec<Fence> {
        let mut uses = locked(&self.0);
        uses.remove(&index)
            .unwrap_or_default()
            .into_iter()
            .map(|stream| streams.now(stream))
            .collect()
    }
}
