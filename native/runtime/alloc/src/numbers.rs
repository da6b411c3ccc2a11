//! The entries of the C interface that need no device: an allocator over a device of
//! numbers, what a test tells that device, replays and plans. See `abi`.

use std::os::raw::c_char;
use std::sync::Arc;

use crate::abi::{entry, guarded, on, text, Handle};
use crate::allocator::Allocator;
use crate::conf::{self, Config};
use crate::error::{Error, Result};
use crate::fake::{Fake, Reached};
use crate::plan::plan;
use crate::policy::by_name;
use crate::replay::{replay, Outcome, Record};

/// See runtime.h.
///
/// # Safety
/// The pointers are valid.
#[no_mangle]
pub unsafe extern "C" fn bp_runtime_open_fake(
    capacity: u64,
    piece: u64,
    options: *const c_char,
    length: u64,
    out: *mut *mut Handle,
) -> i32 {
    guarded(|| {
        let mut config = Config::default();
        // SAFETY: by the contract of this function.
        conf::apply(&mut config, unsafe { text(options, length)? })?;
        let fake = Arc::new(Fake::new(capacity, piece));
        let allocator = Allocator::new(Box::new(fake.clone()), config)?;
        // SAFETY: as above.
        unsafe { *out = Box::into_raw(Box::new(Handle { allocator, fake: Some(fake) })) };
        Ok(())
    })
}

entry! {
    bp_runtime_fake_hold() = |h: &Handle| fake(h).map(Fake::hold);
    bp_runtime_fake_reach(timeline: u64, value: u64) =
        |h: &Handle| fake(h).map(|fake| fake.reach(timeline, value));
    bp_runtime_fake_fail_in(calls: u64) = |h: &Handle| fake(h).map(|fake| fake.fail_in(Some(calls)));
    bp_runtime_fake_calls() -> Reached = |h: &Handle| fake(h).map(Fake::reached);
    bp_runtime_fake_scribble(address: u64, offset: u64) =
        |h: &Handle| fake(h).map(|fake| fake.scribble(address, offset));
}

fn fake(handle: &Handle) -> Result<&Fake> {
    handle.fake.as_deref().ok_or_else(|| Error::Invalid("its device is a real one".into()))
}

unsafe fn records<'a>(data: *const Record, count: u64) -> &'a [Record] {
    if data.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: the caller says that `count` records are there.
    unsafe { std::slice::from_raw_parts(data, count as usize) }
}

/// See runtime.h.
///
/// # Safety
/// The arrays have `count` items; `places` and `reserved` may be null.
#[no_mangle]
pub unsafe extern "C" fn bp_runtime_replay(
    policy: *const c_char,
    length: u64,
    capacity: u64,
    trace: *const Record,
    count: u64,
    places: *mut u64,
    reserved: *mut u64,
    out: *mut Outcome,
) -> i32 {
    guarded(|| {
        // SAFETY: by the contract of this function, here and below.
        let (name, trace) = unsafe { (text(policy, length)?, records(trace, count)) };
        let mut policy = by_name(name, capacity, trace)?;
        let outcome = replay(trace, &mut *policy, |number, place, held| unsafe {
            if !places.is_null() {
                *places.add(number) = place;
            }
            if !reserved.is_null() {
                *reserved.add(number) = held;
            }
        })?;
        unsafe { *out = outcome };
        Ok(())
    })
}

/// See runtime.h.
///
/// # Safety
/// `trace` has `count` records, `offsets` room for `capacity` values.
#[no_mangle]
pub unsafe extern "C" fn bp_runtime_plan(
    trace: *const Record,
    count: u64,
    offsets: *mut u64,
    capacity: u64,
    bytes: *mut u64,
    lower_bound: *mut u64,
) -> i32 {
    guarded(|| {
        // SAFETY: by the contract of this function, here and below.
        let plan = plan(unsafe { records(trace, count) })?;
        for (number, offset) in plan.offsets.iter().enumerate().take(capacity as usize) {
            unsafe { *offsets.add(number) = *offset };
        }
        unsafe {
            *bytes = plan.bytes;
            *lower_bound = plan.lower_bound;
        }
        Ok(())
    })
}
