//! The allocator as PyTorch's pluggable one: by pointer, on PyTorch's streams.
//!
//! PyTorch gives and takes pointers, so a map in shards finds the block; it
//! names streams by their driver handle, so each gets a stream of ours on first
//! sight. A free says that the work submitted until now to its stream, and to those
//! that used the block, may still use it.

use std::collections::HashMap;
use std::ffi::c_void;
use std::hash::{BuildHasherDefault, Hasher};
use std::os::raw::c_int;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::abi::{failed, guarded};
use crate::allocator::Allocator;
use crate::conf::{self, Config};
use crate::cuda::{Cuda, Timeline};
use crate::error::{Error, Result};
use crate::fence::{device, STREAMS};
use crate::lock::locked;
use crate::stats::Stats;

/// The pool that PyTorch's memory comes from.
const POOL: u32 = 2;
const SHARDS: usize = 64;
/// The most devices of a process.
const DEVICES: usize = 16;

/// PyTorch's stream as both sides know it.
struct Known {
    /// The driver's handle; another one after `Torch::take_over`.
    handle: AtomicUsize,
    own: u32,
    timeline: Timeline,
}

impl Known {
    fn is(&self, stream: usize) -> bool {
        self.handle.load(Ordering::Relaxed) == stream
    }
}

/// Streams found without a lock; the others behind one. Chosen: PyTorch's pool has 32 a priority.
const NEAR: usize = 64;

/// Hashes the addresses of blocks, which nobody chooses.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(self.0 ^ u64::from(byte));
        }
    }

    fn write_u64(&mut self, address: u64) {
        // The middle of the product: its highest bits choose the shard.
        self.0 = address.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

type Blocks = HashMap<u64, u64, BuildHasherDefault<AddressHasher>>;

struct Torch {
    allocator: Allocator,
    cuda: Arc<Cuda>,
    blocks: Vec<Mutex<Blocks>>,
    /// In the order of `streams`, null behind the last; entries live as long as the process.
    near: [AtomicPtr<Known>; NEAR],
    streams: Mutex<Vec<&'static Known>>,
}

/// Filled under `OPENING`; what is there stays as long as the process.
static OPEN: [AtomicPtr<Torch>; DEVICES] = {
    // Each place of the array is one of its own.
    #[allow(clippy::declare_interior_mutable_const)]
    const NONE: AtomicPtr<Torch> = AtomicPtr::new(null_mut());
    [NONE; DEVICES]
};
static OPENING: Mutex<()> = Mutex::new(());

/// What a place of a table that only grows points to.
fn shared<T>(place: &AtomicPtr<T>) -> Option<&'static T> {
    // SAFETY: only leaked boxes are stored, with release.
    unsafe { place.load(Ordering::Acquire).as_ref() }
}

fn share<T>(place: &AtomicPtr<T>, value: T) -> &'static T {
    let value = Box::leak(Box::new(value));
    place.store(value, Ordering::Release);
    value
}

impl Torch {
    fn open(device: usize) -> Result<&'static Torch> {
        match OPEN.get(device).and_then(shared) {
            Some(torch) => Ok(torch),
            None => Torch::open_now(device),
        }
    }

    #[cold]
    fn open_now(device: usize) -> Result<&'static Torch> {
        let too_many = || Error::Invalid(format!("device {device} of at most {DEVICES}"));
        let place = OPEN.get(device).ok_or_else(too_many)?;
        let _opening = locked(&OPENING);
        if let Some(torch) = shared(place) {
            return Ok(torch);
        }
        let mut config = Config { piece: conf::WIDE_PIECE, ..Config::default() };
        let options = std::env::var("BEDPLATE_RUNTIME_ALLOC_CONF").unwrap_or_default();
        conf::apply(&mut config, &options)?;
        let cuda = Arc::new(Cuda::open(device as i32).map_err(Error::Device)?);
        // Lives as long as the process: PyTorch frees until its very end.
        Ok(share(
            place,
            Torch {
                allocator: Allocator::new(Box::new(cuda.clone()), config)?,
                cuda,
                blocks: (0..SHARDS).map(|_| Mutex::default()).collect(),
                near: [(); NEAR].map(|()| AtomicPtr::new(null_mut())),
                streams: Mutex::default(),
            },
        ))
    }

    /// Our stream for PyTorch's. The thread that first uses it owns its quick
    /// bins; others take the pool's lock. A process has few streams.
    fn stream(&self, stream: usize) -> Result<&'static Known> {
        let near = self.near.iter().map_while(shared);
        match near.into_iter().find(|known| known.is(stream)) {
            Some(known) => Ok(known),
            None => self.stream_by_lock(stream),
        }
    }

    #[cold]
    fn stream_by_lock(&self, stream: usize) -> Result<&'static Known> {
        let mut streams = locked(&self.streams);
        if let Some(known) = streams.iter().find(|known| known.is(stream)) {
            return Ok(known);
        }
        if streams.len() == STREAMS {
            return self.take_over(&mut streams, stream);
        }
        let timeline = self.cuda.timeline(stream).map_err(device)?;
        let own = self.allocator.open_stream(timeline.number, 0)?;
        let known = Known { handle: AtomicUsize::new(stream), own, timeline };
        let known = match self.near.get(streams.len()) {
            Some(place) => share(place, known),
            None => Box::leak(Box::new(known)),
        };
        streams.push(known);
        Ok(known)
    }

    /// The place of the stream that was seen first, once all work is done: a program has
    /// few streams at a time. If it is there still, it gets another place when it is named.
    #[cold]
    fn take_over(&self, streams: &mut [&'static Known], stream: usize) -> Result<&'static Known> {
        let known = streams[0];
        streams.rotate_left(1);
        self.cuda.move_to(known.timeline.number, stream).map_err(device)?;
        known.handle.store(stream, Ordering::Release);
        Ok(known)
    }

    /// Work may have been submitted to the stream until now.
    fn advance(&self, known: &Known) {
        let value = known.timeline.submitted.fetch_add(1, Ordering::AcqRel) + 1;
        self.allocator.streams().at(known.own).advance_to(value);
    }

    /// The program names a stream, which is there for this moment.
    fn named(&self, known: &Known) -> Result<()> {
        if known.timeline.wanted.load(Ordering::Relaxed) {
            self.cuda.seen(known.timeline.number).map_err(device)?;
        }
        Ok(())
    }

    fn shard(&self, address: u64) -> MutexGuard<'_, Blocks> {
        let shard = (address >> 9).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
        locked(&self.blocks[shard as usize % SHARDS])
    }

    fn allocate(&self, bytes: u64, stream: usize) -> Result<u64> {
        let known = self.stream(stream)?;
        self.named(known)?;
        let got = self.allocator.allocate(POOL, bytes, known.own)?;
        self.shard(got.address).insert(got.address, got.handle);
        Ok(got.address)
    }

    /// The stream is that of the block's life, and may be gone.
    fn free(&self, address: u64, stream: usize) -> Result<()> {
        let handle = self.shard(address).remove(&address).ok_or_else(|| unknown(address))?;
        let freed = self.free_block(handle, stream);
        if freed.is_err() {
            self.shard(address).insert(address, handle);
        }
        freed
    }

    fn free_block(&self, handle: u64, stream: usize) -> Result<()> {
        let known = self.stream(stream)?;
        self.advance(known);
        // Nothing on the block's own stream; a fence when another one frees it.
        self.allocator.used_on(handle, known.own)?;
        // What uses it elsewhere may have got more work since it said so.
        for slot in self.allocator.users(handle) {
            let streams = locked(&self.streams);
            if let Some(user) = streams.iter().find(|user| user.own == slot) {
                self.advance(user);
            }
        }
        self.allocator.free(handle)
    }

    fn used_on(&self, address: u64, stream: usize) -> Result<()> {
        let handle = self.shard(address).get(&address).copied();
        let known = self.stream(stream)?;
        self.advance(known);
        self.named(known)?;
        self.allocator.used_on(handle.ok_or_else(|| unknown(address))?, known.own)
    }
}

fn unknown(address: u64) -> Error {
    Error::BadHandle { handle: address, why: "no live block of this allocator starts here" }
}

/// PyTorch has no way to hear of a failure but null: the sentence goes to
/// stderr.
fn told<T>(run: impl FnOnce() -> Result<T>) -> Option<T> {
    let error = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(value)) => return Some(value),
        Ok(Err(error)) => error,
        Err(_) => Error::Internal("a panic".into()),
    };
    eprintln!("bedplate: {error}");
    failed(&error);
    None
}

/// `alloc_fn` of `torch.cuda.memory.CUDAPluggableAllocator`.
#[no_mangle]
pub extern "C" fn bp_runtime_torch_allocate(
    bytes: isize,
    device: c_int,
    stream: *mut c_void,
) -> *mut c_void {
    let address = told(|| Torch::open(device as usize)?.allocate(bytes as u64, stream as usize));
    address.unwrap_or(0) as *mut c_void
}

/// `free_fn` of `torch.cuda.memory.CUDAPluggableAllocator`.
#[no_mangle]
pub extern "C" fn bp_runtime_torch_free(
    address: *mut c_void,
    _bytes: isize,
    device: c_int,
    stream: *mut c_void,
) {
    if !address.is_null() {
        told(|| Torch::open(device as usize)?.free(address as u64, stream as usize));
    }
}

/// Work on a stream uses a block: what `Tensor.record_stream` says. PyTorch
/// tells no device, and addresses of all devices differ.
#[no_mangle]
pub extern "C" fn bp_runtime_torch_record_stream(address: *mut c_void, stream: *mut c_void) {
    told(|| {
        let owner = OPEN
            .iter()
            .filter_map(shared)
            .find(|torch| torch.shard(address as u64).contains_key(&(address as u64)));
        owner.ok_or_else(|| unknown(address as u64))?.used_on(address as u64, stream as usize)
    });
}

/// The figures of a device's memory, once it is open.
///
/// # Safety
/// `out` is valid.
#[no_mangle]
pub unsafe extern "C" fn bp_runtime_torch_stats(device: c_int, out: *mut Stats) -> i32 {
    guarded(|| {
        // SAFETY: by the contract of this function.
        unsafe { *out = Torch::open(device as usize)?.allocator.stats(POOL)? };
        Ok(())
    })
}
