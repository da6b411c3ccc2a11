//! The C interface. See `native/runtime/include/bedplate/runtime.h`.
//!
//! No panic crosses: it becomes `INTERNAL`, and the allocator refuses from then
//! on. The text of a failure belongs to the thread that saw it.

use std::cell::RefCell;
use std::os::raw::c_char;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

use crate::allocator::{Allocation, Allocator};
use crate::conf::{self, Config};
use crate::error::{Error, Result};
use crate::fake::Fake;
use crate::gate::Seal;
use crate::hal::{BpApi, Hal};
use crate::replay::{Outcome, Record};
use crate::stats::Stats;

/// An allocator, and the fake device when it has one.
pub struct Handle {
    pub(crate) allocator: Allocator,
    pub(crate) fake: Option<Arc<Fake>>,
}

/// A block for snapshots and pictures.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Seen {
    /// First address.
    pub address: u64,
    /// Bytes as cut.
    pub bytes: u64,
    /// Bytes as asked; of a live block.
    pub requested: u64,
    /// The stream that used it last.
    pub stream: u32,
    /// See `block::State`.
    pub state: u8,
    /// The pool's number.
    pub pool: u8,
    /// 0 small, 1 large.
    pub side: u8,
    /// 1 at the start of a segment.
    pub first: u8,
}

thread_local!(static LAST: RefCell<String> = const { RefCell::new(String::new()) });

/// Keeps the sentence for this thread; the status.
#[cold]
pub fn failed(error: &Error) -> i32 {
    LAST.with(|last| *last.borrow_mut() = error.to_string());
    match error {
        Error::Invalid(_) => -1,
        Error::OutOfMemory(_) => -2,
        Error::Quota(_) => -3,
        Error::SteadyState { .. } => -4,
        Error::BadHandle { .. } => -5,
        Error::Device(_) => -6,
        Error::HostMemory => -7,
        Error::Internal(_) => -8,
    }
}

/// Runs what no allocator is disabled by.
pub fn guarded(run: impl FnOnce() -> Result<()>) -> i32 {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => failed(&error),
        Err(_) => failed(&Error::Internal("a panic".into())),
    }
}

/// Runs on an allocator; a panic disables it.
#[inline]
pub(crate) unsafe fn on(handle: *const Handle, run: impl FnOnce(&Handle) -> Result<()>) -> i32 {
    // SAFETY: the caller passes what `open` gave, or null.
    let handle = match unsafe { handle.as_ref() } {
        Some(handle) => handle,
        None => return failed(&Error::Invalid("the allocator is null".into())),
    };
    match catch_unwind(AssertUnwindSafe(|| run(handle))) {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => failed(&error),
        Err(_) => {
            handle.allocator.disable();
            failed(&Error::Internal("a panic".into()))
        }
    }
}

pub(crate) unsafe fn text<'a>(data: *const c_char, length: u64) -> Result<&'a str> {
    if data.is_null() {
        return Ok("");
    }
    // SAFETY: the caller says that `length` bytes are there.
    let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length as usize) };
    std::str::from_utf8(bytes).map_err(|_| Error::Invalid("a text is not UTF-8".into()))
}

/// See runtime.h.
///
/// # Safety
/// The pointers are valid; the API and the device outlive the allocator.
#[no_mangle]
pub unsafe extern "C" fn bp_runtime_open(
    api: *const BpApi,
    device: u64,
    piece: u64,
    options: *const c_char,
    length: u64,
    out: *mut *mut Handle,
) -> i32 {
    guarded(|| {
        let mut config = Config::default();
        // SAFETY: by the contract of this function, here and below.
        conf::apply(&mut config, unsafe { text(options, length)? })?;
        // Poison goes where the host reaches memory by its handle.
        config.mapping &= config.quarantine_bytes == 0;
        let phys = unsafe { Hal::new(api, device, piece) };
        let allocator = Allocator::new(Box::new(phys), config)?;
        unsafe { *out = Box::into_raw(Box::new(Handle { allocator, fake: None })) };
        Ok(())
    })
}

/// See runtime.h.
///
/// # Safety
/// `handle` came from an open and is not used again.
#[no_mangle]
pub unsafe extern "C" fn bp_runtime_close(handle: *mut Handle) -> i32 {
    guarded(|| {
        if !handle.is_null() {
            // SAFETY: made by Box::into_raw.
            drop(unsafe { Box::from_raw(handle) });
        }
        Ok(())
    })
}

/// See runtime.h.
///
/// # Safety
/// The pointers are valid.
#[no_mangle]
pub unsafe extern "C" fn bp_runtime_allocate(
    handle: *const Handle,
    pool: u32,
    bytes: u64,
    stream: u32,
    out: *mut Allocation,
) -> i32 {
    // SAFETY: by the contract of this function.
    unsafe {
        if let Some(h) = handle.as_ref() {
            if h.allocator.take_quick(pool, bytes, stream, &mut *out) {
                return 0;
            }
        }
        allocate_slowly(handle, pool, bytes, stream, out)
    }
}

/// See runtime.h.
///
/// # Safety
/// `handle` is an allocator.
#[no_mangle]
pub unsafe extern "C" fn bp_runtime_free(handle: *const Handle, block: u64) -> i32 {
    // SAFETY: by the contract of this function.
    unsafe {
        if let Some(h) = handle.as_ref() {
            if h.allocator.give_quick(block) {
                return 0;
            }
        }
        free_slowly(handle, block)
    }
}

/// Apart, so that the quick way has no frame.
#[cold]
#[inline(never)]
unsafe fn allocate_slowly(
    handle: *const Handle,
    pool: u32,
    bytes: u64,
    stream: u32,
    out: *mut Allocation,
) -> i32 {
    // SAFETY: by the contract of the entry.
    unsafe { on(handle, |h| h.allocator.allocate_by_lock(pool, bytes, stream, &mut *out)) }
}

#[cold]
#[inline(never)]
unsafe fn free_slowly(handle: *const Handle, block: u64) -> i32 {
    // SAFETY: by the contract of the entry.
    unsafe { on(handle, |h| h.allocator.free_by_lock(block)) }
}

/// Functions of an allocator alone, and one result.
macro_rules! entry {
    ($($name:ident ( $($argument:ident : $kind:ty),* ) $(-> $out:ty)? = $run:expr;)*) => {$(
        /// See runtime.h.
        ///
        /// # Safety
        /// The pointers are valid.
        #[no_mangle]
        pub unsafe extern "C" fn $name(handle: *const Handle, $($argument: $kind,)* $(out: *mut $out)?) -> i32 {
            // SAFETY: by the contract of this function.
            unsafe { on(handle, |h| entry!(@put h $run, $(out: $out)?)) }
        }
    )*};
    (@put $h:ident $run:expr, ) => { ($run)($h) };
    (@put $h:ident $run:expr, $out:ident : $type:ty) => {{
        let value: $type = ($run)($h)?;
        *$out = value;
        Ok(())
    }};
}

pub(crate) use entry;

entry! {
    bp_runtime_stream_open(timeline: u64, value: u64) -> u32 =
        |h: &Handle| h.allocator.open_stream(timeline, value);
    bp_runtime_abandon() = |h: &Handle| {
        h.allocator.abandon();
        Ok(())
    };
    bp_runtime_stream_close(stream: u32) = |h: &Handle| h.allocator.close_stream(stream);
    bp_runtime_stream_advance(stream: u32, value: u64) =
        |h: &Handle| h.allocator.streams().advance(stream, value);
    bp_runtime_stream_flush(stream: u32) = |h: &Handle| h.allocator.flush(stream);
    bp_runtime_used_on(block: u64, stream: u32) = |h: &Handle| h.allocator.used_on(block, stream);
    bp_runtime_describe(block: u64) -> Allocation = |h: &Handle| h.allocator.describe(block);
    bp_runtime_quota(pool: u32, bytes: u64) = |h: &Handle| h.allocator.set_quota(pool, bytes);
    bp_runtime_trim() -> u64 = |h: &Handle| h.allocator.trim();
    bp_runtime_stats(pool: u32) -> Stats = |h: &Handle| h.allocator.stats(pool);
    bp_runtime_check() = |h: &Handle| h.allocator.check().map_err(Error::Internal);
    bp_runtime_seal(mode: u32) = |h: &Handle| {
        h.allocator.seal(match mode {
            0 => Seal::Open,
            1 => Seal::Count,
            2 => Seal::Refuse,
            _ => return Err(Error::Invalid(format!("there is no seal {mode}"))),
        });
        Ok(())
    };
}

/// See runtime.h.
///
/// # Safety
/// `out` has room for `capacity` blocks.
#[no_mangle]
pub unsafe extern "C" fn bp_runtime_blocks(
    handle: *const Handle,
    out: *mut Seen,
    capacity: u64,
    count: *mut u64,
) -> i32 {
    // SAFETY: by the contract of this function.
    unsafe {
        on(handle, |h| {
            let mut seen = 0;
            h.allocator.each_block(|pool, side, index, block| {
                let _ = index;
                if seen < capacity {
                    *out.add(seen as usize) = Seen {
                        address: block.address.get(),
                        bytes: block.bytes.get(),
                        requested: block.requested(),
                        stream: block.stream.get(),
                        state: block.state() as u8,
                        pool: pool as u8,
                        side: side as u8,
                        first: u8::from(block.before.get() == crate::block::NIL),
                    };
                }
                seen += 1;
            });
            *count = seen;
            Ok(())
        })
    }
}

/// See runtime.h.
///
/// # Safety
/// `buffer` has `capacity` bytes.
#[no_mangle]
pub unsafe extern "C" fn bp_runtime_findings(
    handle: *const Handle,
    buffer: *mut c_char,
    capacity: u64,
    length: *mut u64,
) -> i32 {
    // SAFETY: by the contract of this function.
    unsafe {
        on(handle, |h| {
            let found = h.allocator.findings();
            *length = give(&found.join("\n"), buffer, capacity);
            if *length >= capacity {
                h.allocator.keep_findings(found);
            }
            Ok(())
        })
    }
}

/// Copies a text, terminated; its true length.
unsafe fn give(text: &str, buffer: *mut c_char, capacity: u64) -> u64 {
    if capacity > 0 {
        let fits = text.len().min(capacity as usize - 1);
        // SAFETY: the caller's buffer has `capacity` bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast(), fits);
            *buffer.add(fits) = 0;
        }
    }
    text.len() as u64
}

/// See runtime.h.
///
/// # Safety
/// `buffer` has `capacity` bytes.
#[no_mangle]
pub unsafe extern "C" fn bp_runtime_last_error(buffer: *mut c_char, capacity: u64) -> u64 {
    // SAFETY: by the contract of this function.
    LAST.with(|last| unsafe { give(&last.borrow(), buffer, capacity) })
}

// The sizes that `native/runtime/layout.c` asserts of the header.
const _: () = {
    use std::mem::size_of;
    assert!(size_of::<Allocation>() == 40);
    assert!(size_of::<Stats>() == 2 * 6 * 32 + 12 * 8 + 2 * 40);
    assert!(size_of::<Seen>() == 32);
    assert!(size_of::<Record>() == 40);
    assert!(size_of::<Outcome>() == 48);
};
