//! What the allocator needs of a device. One door: the HAL behind it, or a
//! device of numbers.

use std::sync::Arc;

/// Why the device did not do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PhysError {
    /// No memory or no address space is left; the device's own words.
    NoMemory(String),
    /// Anything else; the device's own words.
    Failed(String),
}

/// Shorthand.
pub type PhysResult<T> = std::result::Result<T, PhysError>;

/// Memory of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The device's name of it.
    pub handle: u64,
    /// Its address; 0 where the device has none, or before it is mapped.
    pub address: u64,
}

/// A device's memory, as the driver gives it. Every call but `completed` is a
/// driver call that a sealed allocator may not make.
pub trait Phys: Send + Sync {
    /// Bytes of the least piece that can be mapped; 0 when addresses cannot be
    /// reserved apart from memory.
    fn piece_bytes(&self) -> u64;
    /// Plain memory.
    fn create(&self, bytes: u64) -> PhysResult<Memory>;
    /// Memory to be mapped; its size is a multiple of the piece.
    fn create_piece(&self, bytes: u64) -> PhysResult<u64>;
    /// Gives back either kind. Not mapped any more.
    fn release(&self, handle: u64) -> PhysResult<()>;
    /// Addresses without memory.
    fn reserve(&self, bytes: u64) -> PhysResult<u64>;
    /// Gives reserved addresses back.
    fn unreserve(&self, address: u64, bytes: u64) -> PhysResult<()>;
    /// Puts memory behind addresses.
    fn map(&self, address: u64, handle: u64, bytes: u64) -> PhysResult<()>;
    /// Takes the memory from behind addresses: one piece, as it was mapped.
    fn unmap(&self, address: u64, bytes: u64) -> PhysResult<()>;
    /// The value a timeline has reached.
    fn completed(&self, timeline: u64) -> PhysResult<u64>;
    /// Waits on the host until a timeline has reached a value.
    fn wait(&self, timeline: u64, value: u64) -> PhysResult<()>;
    /// Fills memory that nobody works on with a byte; false where the host
    /// cannot reach it.
    fn fill(&self, place: Memory, offset: u64, bytes: u64, value: u8) -> PhysResult<bool>;
    /// The first offset from `offset` on whose byte is not `value`.
    fn differs(&self, place: Memory, offset: u64, bytes: u64, value: u8)
        -> PhysResult<Option<u64>>;
}

/// A device that others hold too.
impl<T: Phys> Phys for Arc<T> {
    fn piece_bytes(&self) -> u64 {
        (**self).piece_bytes()
    }
    fn create(&self, bytes: u64) -> PhysResult<Memory> {
        (**self).create(bytes)
    }
    fn create_piece(&self, bytes: u64) -> PhysResult<u64> {
        (**self).create_piece(bytes)
    }
    fn release(&self, handle: u64) -> PhysResult<()> {
        (**self).release(handle)
    }
    fn reserve(&self, bytes: u64) -> PhysResult<u64> {
        (**self).reserve(bytes)
    }
    fn unreserve(&self, address: u64, bytes: u64) -> PhysResult<()> {
        (**self).unreserve(address, bytes)
    }
    fn map(&self, address: u64, handle: u64, bytes: u64) -> PhysResult<()> {
        (**self).map(address, handle, bytes)
    }
    fn unmap(&self, address: u64, bytes: u64) -> PhysResult<()> {
        (**self).unmap(address, bytes)
    }
    fn completed(&self, timeline: u64) -> PhysResult<u64> {
        (**self).completed(timeline)
    }
    fn wait(&self, timeline: u64, value: u64) -> PhysResult<()> {
        (**self).wait(timeline, value)
    }
    fn fill(&self, place: Memory, offset: u64, bytes: u64, value: u8) -> PhysResult<bool> {
        (**self).fill(place, offset, bytes, value)
    }
    fn differs(
        &self,
        place: Memory,
        offset: u64,
        bytes: u64,
        value: u8,
    ) -> PhysResult<Option<u64>> {
        (**self).differs(place, offset, bytes, value)
    }
}
