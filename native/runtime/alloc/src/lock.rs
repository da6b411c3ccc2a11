//! One way to take a lock: whoever panicked under it has had the allocator disabled, so
//! what it guards is looked at all the same.
//!
//! ThreadSanitizer sees this crate and not std, whose way of waiting for a lock it would
//! take for no lock at all. The feature `spin` asks again instead of waiting: that is
//! inlined here, and seen.

use std::sync::{Mutex, MutexGuard};

/// Takes the lock.
#[inline]
#[cfg(not(feature = "spin"))]
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|error| error.into_inner())
}

/// Takes the lock.
#[cfg(feature = "spin")]
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    use std::sync::TryLockError;
    loop {
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::Poisoned(error)) => return error.into_inner(),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
}
