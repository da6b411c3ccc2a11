//! Blocks of device memory and the slab that holds their descriptions.
//!
//! Device memory itself holds no metadata. A block is found by its index in a
//! slab of chunks that never move, so a holder may read its own block without
//! the pool's lock. Every field is a relaxed atomic: on the machines we know a
//! plain load or store, and no data race for a stale handle to run into. The
//! one word that decides who owns a block is `tag`: generation and state.

use std::alloc::{alloc_zeroed, dealloc, Layout};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicU8, Ordering};
use std::sync::Mutex;

use crate::error::{Error, Result};
use crate::lock::locked;

/// Where a block is described in the slab.
pub type Index = u32;
/// No block.
pub const NIL: Index = u32::MAX;

/// A relaxed 64-bit field.
#[derive(Default)]
pub struct Word(AtomicU64);

impl Word {
    /// The value.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    /// Sets the value.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
    /// Adds by a load and a store: for fields with one writer at a time.
    #[inline]
    pub fn add(&self, value: u64) {
        self.set(self.get().wrapping_add(value));
    }
    /// Subtracts, as `add`.
    #[inline]
    pub fn sub(&self, value: u64) {
        self.set(self.get().wrapping_sub(value));
    }
}

/// A relaxed 32-bit field.
#[derive(Default)]
pub struct Half(AtomicU32);

impl Half {
    /// The value.
    #[inline]
    pub fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
    /// Sets the value.
    #[inline]
    pub fn set(&self, value: u32) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// A relaxed 8-bit field.
#[derive(Default)]
pub struct Byte(AtomicU8);

impl Byte {
    /// The value.
    #[inline]
    pub fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }
    /// Sets the value.
    #[inline]
    pub fn set(&self, value: u8) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// Who owns a block. The numbers are the low byte of `tag`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Describes nothing.
    Vacant = 0,
    /// In a bin of its arena.
    Free = 1,
    /// With the caller.
    Live = 2,
    /// In the quick bin of a stream's thread.
    Quick = 3,
    /// Freed; work on other streams may still use it.
    Pending = 4,
    /// Addresses without memory behind them.
    Hole = 5,
    /// Freed under the sanitizer, kept from reuse for a while.
    Quarantine = 6,
}

const STATES: [State; 7] = [
    State::Vacant,
    State::Free,
    State::Live,
    State::Quick,
    State::Pending,
    State::Hole,
    State::Quarantine,
];

/// One block, as long as a cache line: a look at a neighbour costs one.
#[derive(Default)]
#[repr(align(64))]
pub struct Block {
    tag: AtomicU64,
    /// First address.
    pub address: Word,
    /// Size, a multiple of the unit.
    pub bytes: Word,
    /// The value that the block's own stream must reach before another stream,
    /// or the driver, may touch the block.
    pub fence: Word,
    /// The stream that last owned it.
    pub stream: Half,
    /// Neighbour with lower addresses.
    pub before: Half,
    /// Neighbour with higher addresses.
    pub after: Half,
    /// List links: of a bin, a quick bin, or the vacant descriptions.
    pub prev: Half,
    /// See `prev`.
    pub next: Half,
    /// The plain segment it lies in.
    pub segment: Half,
    /// Bytes that the caller did not ask for; less than an eighth of 1 MiB.
    waste: Half,
    /// The pool and arena it belongs to.
    pub place: Byte,
    /// The quick bin's class of a live block, or `quick::NO_CLASS`.
    pub class: Byte,
    /// Not 0 when other streams used it: `fence::Uses` knows which.
    pub shared: Byte,
}

const _: () = assert!(std::mem::size_of::<Block>() == 64);

impl Block {
    /// Describes all of a segment, or of a range of addresses, that is new.
    pub fn begin(&self, address: u64, bytes: u64, place: u8, state: State) {
        self.address.set(address);
        self.bytes.set(bytes);
        self.before.set(NIL);
        self.after.set(NIL);
        self.stream.set(0);
        self.fence.set(0);
        self.place.set(place);
        self.set_state(state);
    }

    /// What the caller asked for.
    #[inline]
    pub fn requested(&self) -> u64 {
        self.bytes.get().saturating_sub(u64::from(self.waste.get()))
    }

    /// As `requested`, of a block that is not free and whose size is known.
    #[inline]
    pub fn requested_of(&self, size: u64) -> u64 {
        size.wrapping_sub(u64::from(self.waste.get()))
    }

    /// Sets what the caller asked for: at most the block's `size`.
    #[inline]
    pub fn set_requested(&self, bytes: u64, size: u64) {
        self.waste.set((size - bytes) as u32);
    }

    /// The state.
    #[inline]
    pub fn state(&self) -> State {
        STATES[(self.tag.load(Ordering::Relaxed) & 7) as usize]
    }

    /// The generation, which every free moves on.
    #[inline]
    pub fn generation(&self) -> u32 {
        (self.tag.load(Ordering::Relaxed) >> 32) as u32
    }

    /// Sets the state; only the owner does.
    #[inline]
    pub fn set_state(&self, state: State) {
        let tag = self.tag.load(Ordering::Relaxed);
        self.tag.store(tag & !7 | state as u64, Ordering::Relaxed);
    }

    /// Quick -> live, by the owner; the generation.
    #[inline(always)]
    pub fn revive(&self) -> u32 {
        let tag = self.tag.load(Ordering::Relaxed);
        self.tag.store(tag ^ (State::Quick as u64 ^ State::Live as u64), Ordering::Relaxed);
        (tag >> 32) as u32
    }

    /// Live -> `state` for the one caller whose handle is current; others get
    /// the reason.
    #[inline]
    pub fn end_life(&self, generation: u32, state: State) -> std::result::Result<(), &'static str> {
        let live = u64::from(generation) << 32 | State::Live as u64;
        let next = u64::from(generation.wrapping_add(1)) << 32 | state as u64;
        match self.tag.compare_exchange(live, next, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(found) => Err(stale(found, generation)),
        }
    }

    /// Whether a handle of this generation is of the live block.
    #[inline]
    pub fn is_live(&self, generation: u32) -> std::result::Result<(), &'static str> {
        let found = self.tag.load(Ordering::Acquire);
        if found == (u64::from(generation) << 32 | State::Live as u64) {
            Ok(())
        } else {
            Err(stale(found, generation))
        }
    }
}

#[cold]
fn stale(found: u64, generation: u32) -> &'static str {
    if (found >> 32) as u32 == generation.wrapping_add(1) && found & 7 != State::Live as u64 {
        "it was freed before"
    } else {
        "not of a live block of this allocator"
    }
}

const CHUNK: usize = 4096;
const CHUNKS: usize = 4096;

/// Where a live block lies in the device's memory, on devices that name memory
/// by a handle. Apart from `Block`, which others need not know it for.
#[derive(Default)]
pub struct Anchor {
    /// The device's memory, or 0 where addresses name it.
    pub memory: Word,
    /// Where in that memory.
    pub offset: Word,
}

#[repr(C)]
struct Chunk {
    blocks: [Block; CHUNK],
    anchors: [Anchor; CHUNK],
}

/// Allocators of this process so far.
static SLABS: AtomicU32 = AtomicU32::new(1);

/// The descriptions of all blocks of an allocator.
pub struct Slab {
    /// Where generations begin: another number in each allocator, so that a handle of
    /// one names nothing in another.
    first_generation: u32,
    chunks: [AtomicPtr<Chunk>; CHUNKS],
    length: AtomicU32,
    vacant: Mutex<Index>,
}

impl Slab {
    /// An empty slab.
    pub fn new() -> Self {
        let chunks = std::array::from_fn(|_| AtomicPtr::default());
        let first_generation = SLABS.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b1);
        Slab { first_generation, chunks, length: AtomicU32::new(0), vacant: Mutex::new(NIL) }
    }

    #[inline(always)]
    fn chunk(&self, index: Index) -> &Chunk {
        debug_assert!(index < self.length.load(Ordering::Relaxed));
        let chunk = self.chunks[index as usize / CHUNK % CHUNKS].load(Ordering::Acquire);
        // SAFETY: an index below the length lies in a chunk that was published
        // whole and lives as long as the slab.
        unsafe { &*chunk }
    }

    /// The block at an index that came from `claim`.
    #[inline(always)]
    pub fn at(&self, index: Index) -> &Block {
        &self.chunk(index).blocks[index as usize % CHUNK]
    }

    /// Its place in the device's memory.
    #[inline]
    pub fn anchor(&self, index: Index) -> &Anchor {
        &self.chunk(index).anchors[index as usize % CHUNK]
    }

    /// The block of any number, or None.
    #[inline(always)]
    pub fn get(&self, index: Index) -> Option<&Block> {
        if index < self.length.load(Ordering::Acquire) {
            Some(self.at(index))
        } else {
            None
        }
    }

    /// A vacant description. Its generation is kept.
    pub fn claim(&self) -> Result<Index> {
        let mut vacant = locked(&self.vacant);
        if *vacant == NIL {
            *vacant = self.grow()?;
        }
        let index = *vacant;
        *vacant = self.at(index).next.get();
        Ok(index)
    }

    /// Gives a description back.
    pub fn vacate(&self, index: Index) {
        let mut vacant = locked(&self.vacant);
        let block = self.at(index);
        block.set_state(State::Vacant);
        block.next.set(*vacant);
        *vacant = index;
    }

    fn grow(&self) -> Result<Index> {
        let first = self.length.load(Ordering::Relaxed) as usize;
        if first / CHUNK == CHUNKS {
            return Err(Error::HostMemory);
        }
        // SAFETY: the layout is not empty, and zero is a valid Chunk.
        let chunk = unsafe { alloc_zeroed(Layout::new::<Chunk>()) }.cast::<Chunk>();
        if chunk.is_null() {
            return Err(Error::HostMemory);
        }
        // SAFETY: just made, and nobody else's yet.
        for (offset, block) in unsafe { &*chunk }.blocks.iter().enumerate() {
            let last = offset + 1 == CHUNK;
            block.next.set(if last { NIL } else { (first + offset + 1) as Index });
            block.tag.store(u64::from(self.first_generation) << 32, Ordering::Relaxed);
        }
        self.chunks[first / CHUNK].store(chunk, Ordering::Release);
        self.length.store((first + CHUNK) as u32, Ordering::Release);
        Ok(first as Index)
    }
}

impl Default for Slab {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        for chunk in self.chunks.iter() {
            let chunk = chunk.load(Ordering::Acquire);
            if !chunk.is_null() {
                // SAFETY: made by `grow` with this layout; a Chunk needs no drop.
                unsafe { dealloc(chunk.cast(), Layout::new::<Chunk>()) };
            }
        }
    }
}

/// The caller's name of a live block: generation above, index + 1 below.
#[inline]
pub fn handle_of(index: Index, generation: u32) -> u64 {
    u64::from(generation) << 32 | (u64::from(index) + 1)
}

/// Index and generation of a handle; the index of 0 is NIL.
#[inline]
pub fn parts_of(handle: u64) -> (Index, u32) {
    ((handle as u32).wrapping_sub(1), (handle >> 32) as u32)
}
