//! A device of numbers: as much memory as it is told, streams that run when
//! the test says so, and any call made to fail. It checks the rules that a
//! driver has: nothing unmapped twice, nothing released while mapped.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use crate::lock::locked;
use crate::phys::{Memory, Phys, PhysError, PhysResult};
use crate::stats::Calls;

/// Calls that reached the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Reached {
    /// Of the driver.
    pub calls: Calls,
    /// `fill`.
    pub fill: u64,
}

#[derive(Default)]
struct Inner {
    reached: Reached,
    used: u64,
    next: u64,
    sizes: HashMap<u64, u64>,
    mapped: BTreeMap<u64, (u64, u64)>,
    reserved: BTreeMap<u64, u64>,
    timelines: HashMap<u64, (u64, u64)>,
    fail_in: Option<u64>,
    lag: bool,
    filled: HashMap<u64, (u64, u64, u8)>,
    scribbled: HashMap<u64, u64>,
}

/// See the module.
pub struct Fake {
    capacity: u64,
    piece: u64,
    inner: Mutex<Inner>,
}

impl Fake {
    /// A device of `capacity` bytes that maps pieces of `piece` bytes, or
    /// cannot map with 0. Timelines pass at once until `hold` is called.
    pub fn new(capacity: u64, piece: u64) -> Self {
        let inner = Inner { next: 1 << 32, ..Inner::default() };
        Fake { capacity, piece, inner: Mutex::new(inner) }
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        locked(&self.inner)
    }

    /// Timelines pass only when `reach` says so.
    pub fn hold(&self) {
        self.inner().lag = true;
    }

    /// A timeline reaches a value.
    pub fn reach(&self, timeline: u64, value: u64) {
        self.inner().timelines.entry(timeline).or_default().0 = value;
    }

    /// The call after the next `calls` calls fails, once.
    pub fn fail_in(&self, calls: Option<u64>) {
        self.inner().fail_in = calls;
    }

    /// A late write to a block that starts at an address, at an offset.
    pub fn scribble(&self, address: u64, offset: u64) {
        self.inner().scribbled.insert(address, offset);
    }

    /// What was called.
    pub fn reached(&self) -> Reached {
        self.inner().reached
    }

    /// Bytes that the device has given out.
    pub fn used(&self) -> u64 {
        self.inner().used
    }

    /// Whether all of a range has memory behind it.
    pub fn is_backed(&self, address: u64, bytes: u64) -> bool {
        let inner = self.inner();
        let mut at = address;
        while at < address + bytes {
            match inner.mapped.range(..=at).next_back() {
                Some((start, (size, _))) if start + size > at => at = start + size,
                _ => return false,
            }
        }
        true
    }
}

impl Inner {
    fn step(&mut self, what: &str) -> PhysResult<()> {
        match self.fail_in {
            Some(0) => {
                self.fail_in = None;
                Err(PhysError::Failed(format!("{what}: a planted failure")))
            }
            Some(left) => {
                self.fail_in = Some(left - 1);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn make(&mut self, bytes: u64, capacity: u64, what: &str) -> PhysResult<u64> {
        self.step(what)?;
        self.reached.calls.create += 1;
        if bytes > capacity - self.used {
            return Err(PhysError::NoMemory(format!("{} of {capacity} bytes used", self.used)));
        }
        self.used += bytes;
        self.next += (bytes + (1 << 21)) & !((1 << 21) - 1);
        let handle = self.next;
        self.sizes.insert(handle, bytes);
        Ok(handle)
    }
}

impl Phys for Fake {
    fn piece_bytes(&self) -> u64 {
        self.piece
    }

    fn create(&self, bytes: u64) -> PhysResult<Memory> {
        let mut inner = self.inner();
        let handle = inner.make(bytes, self.capacity, "create")?;
        let address = handle << 8;
        inner.mapped.insert(address, (bytes, 0));
        Ok(Memory { handle, address })
    }

    fn create_piece(&self, bytes: u64) -> PhysResult<u64> {
        self.inner().make(bytes, self.capacity, "create_piece")
    }

    fn release(&self, handle: u64) -> PhysResult<()> {
        let mut inner = self.inner();
        inner.step("release")?;
        inner.reached.calls.release += 1;
        assert!(!inner.mapped.values().any(|m| m.1 == handle), "released while mapped");
        inner.mapped.remove(&(handle << 8));
        let bytes = inner.sizes.remove(&handle).expect("released what does not exist");
        inner.used -= bytes;
        Ok(())
    }

    fn reserve(&self, bytes: u64) -> PhysResult<u64> {
        let mut inner = self.inner();
        inner.step("reserve")?;
        inner.next += bytes;
        let address = (inner.next << 8) & !((1 << 30) - 1);
        inner.next += bytes;
        inner.reserved.insert(address, bytes);
        Ok(address)
    }

    fn unreserve(&self, address: u64, bytes: u64) -> PhysResult<()> {
        let mut inner = self.inner();
        assert_eq!(inner.reserved.remove(&address), Some(bytes), "not reserved");
        Ok(())
    }

    fn map(&self, address: u64, handle: u64, bytes: u64) -> PhysResult<()> {
        let mut inner = self.inner();
        inner.step("map")?;
        inner.reached.calls.map += 1;
        assert_eq!(inner.sizes.get(&handle), Some(&bytes), "maps a whole piece");
        let (&start, &size) = inner.reserved.range(..=address).next_back().expect("not reserved");
        assert!(address + bytes <= start + size, "outside the reservation");
        if let Some((&below, &(size, _))) = inner.mapped.range(..address + bytes).next_back() {
            assert!(below + size <= address, "mapped twice");
        }
        inner.mapped.insert(address, (bytes, handle));
        Ok(())
    }

    fn unmap(&self, address: u64, bytes: u64) -> PhysResult<()> {
        let mut inner = self.inner();
        inner.step("unmap")?;
        inner.reached.calls.unmap += 1;
        let mut at = address;
        while at < address + bytes {
            let (size, _) = inner.mapped.remove(&at).expect("unmaps what is not mapped");
            at += size;
        }
        assert_eq!(at, address + bytes, "unmaps part of a piece");
        Ok(())
    }

    fn completed(&self, timeline: u64) -> PhysResult<u64> {
        let inner = self.inner();
        if !inner.lag {
            return Ok(u64::MAX >> 1);
        }
        Ok(inner.timelines.get(&timeline).map_or(0, |t| t.0))
    }

    fn wait(&self, timeline: u64, value: u64) -> PhysResult<()> {
        let mut inner = self.inner();
        inner.step("wait")?;
        inner.reached.calls.wait += 1;
        let reached = &mut inner.timelines.entry(timeline).or_default().0;
        *reached = (*reached).max(value);
        Ok(())
    }

    fn fill(&self, place: Memory, offset: u64, bytes: u64, value: u8) -> PhysResult<bool> {
        let mut inner = self.inner();
        inner.step("fill")?;
        inner.reached.fill += 1;
        inner.filled.insert(place.address, (offset, bytes, value));
        Ok(true)
    }

    fn differs(
        &self,
        place: Memory,
        offset: u64,
        bytes: u64,
        value: u8,
    ) -> PhysResult<Option<u64>> {
        let inner = self.inner();
        let filled = inner.filled.get(&place.address) == Some(&(offset, bytes, value));
        Ok(if filled { inner.scribbled.get(&place.address).copied() } else { Some(offset) })
    }
}
