//! A device of the HAL as the allocator sees it.

#[allow(missing_docs)]
#[rustfmt::skip]
#[path = "../../../hal/rust/hal.rs"]
mod sys;

use std::mem::{size_of, zeroed};

use crate::phys::{Memory, Phys, PhysError, PhysResult};
pub use sys::BpApi;
use sys::{BpHead, BpMemoryInfo, BpRange, BP_OUT_OF_MEMORY};

/// See the module. The API and the device outlive it: the caller of `open`
/// says so.
pub struct Hal {
    api: *const BpApi,
    device: u64,
    piece: u64,
}

// SAFETY: the HAL's functions may be called from any thread.
unsafe impl Send for Hal {}
// SAFETY: as above.
unsafe impl Sync for Hal {}

/// Calls a function of a table; the loader left no slot empty.
macro_rules! call {
    ($self:ident, $table:ident . $function:ident ( $($argument:expr),* )) => {{
        // SAFETY: the loader completed the table, and the pointers passed live
        // through the call.
        let status = unsafe {
            match (*(*$self.api).$table).$function {
                Some(function) => function($self.device, $($argument),*),
                None => sys::BP_UNSUPPORTED,
            }
        };
        $self.check(status)
    }};
}

impl Hal {
    /// # Safety
    /// `api` is a table completed by the loader, and `device` is open on it;
    /// both outlive the value.
    pub unsafe fn new(api: *const BpApi, device: u64, piece: u64) -> Hal {
        Hal { api, device, piece }
    }

    fn check(&self, status: i32) -> PhysResult<()> {
        if status >= 0 {
            return Ok(());
        }
        let text = self.last_error().unwrap_or_else(|| format!("the device said {status}"));
        Err(if status == BP_OUT_OF_MEMORY {
            PhysError::NoMemory(text)
        } else {
            PhysError::Failed(text)
        })
    }

    fn last_error(&self) -> Option<String> {
        let mut buffer = [0u8; 512];
        let mut length = 0u64;
        // SAFETY: the buffer is as long as is said.
        unsafe {
            let function = (*(*self.api).core).last_error?;
            function(buffer.as_mut_ptr().cast(), buffer.len() as u64, &mut length);
        }
        let length = (length as usize).min(buffer.len() - 1);
        Some(String::from_utf8_lossy(&buffer[..length]).into_owned()).filter(|t| !t.is_empty())
    }

    fn memory(&self, bytes: u64, alignment: u64) -> PhysResult<(u64, BpMemoryInfo)> {
        // SAFETY: zero is a valid BpMemoryInfo.
        let mut info: BpMemoryInfo = unsafe { zeroed() };
        info.head = head::<BpMemoryInfo>();
        info.bytes = bytes;
        info.alignment = alignment;
        let mut handle = 0;
        call!(self, mem.create(&info, &mut handle))?;
        // SAFETY: as above.
        let mut found: BpMemoryInfo = unsafe { zeroed() };
        found.head = head::<BpMemoryInfo>();
        call!(self, mem.describe(handle, &mut found))?;
        Ok((handle, found))
    }

    fn host(&self, place: Memory) -> PhysResult<*mut u8> {
        // SAFETY: zero is a valid BpMemoryInfo.
        let mut found: BpMemoryInfo = unsafe { zeroed() };
        found.head = head::<BpMemoryInfo>();
        if place.handle == 0 {
            return Ok(std::ptr::null_mut());
        }
        call!(self, mem.describe(place.handle, &mut found))?;
        Ok(found.host.cast())
    }
}

fn head<T>() -> BpHead {
    BpHead { struct_version: 1, struct_size: size_of::<T>() as u32 }
}

impl Phys for Hal {
    fn piece_bytes(&self) -> u64 {
        self.piece
    }

    fn create(&self, bytes: u64) -> PhysResult<Memory> {
        let (handle, info) = self.memory(bytes, 0)?;
        Ok(Memory { handle, address: info.address })
    }

    fn create_piece(&self, bytes: u64) -> PhysResult<u64> {
        Ok(self.memory(bytes, self.piece)?.0)
    }

    fn release(&self, handle: u64) -> PhysResult<()> {
        call!(self, mem.release(handle))
    }

    fn reserve(&self, bytes: u64) -> PhysResult<u64> {
        let mut address = 0;
        call!(self, mem.reserve(bytes, self.piece, &mut address))?;
        Ok(address)
    }

    fn unreserve(&self, _address: u64, _bytes: u64) -> PhysResult<()> {
        // Addresses stay reserved until the device is closed: the ABI says so.
        Ok(())
    }

    fn map(&self, address: u64, handle: u64, bytes: u64) -> PhysResult<()> {
        let range = BpRange { memory: handle, offset: 0, length: bytes };
        call!(self, mem.map(address, &range))
    }

    fn unmap(&self, address: u64, bytes: u64) -> PhysResult<()> {
        call!(self, mem.unmap(address, bytes))
    }

    fn completed(&self, timeline: u64) -> PhysResult<u64> {
        let mut value = 0;
        call!(self, timeline.query(timeline, &mut value))?;
        Ok(value)
    }

    fn wait(&self, timeline: u64, value: u64) -> PhysResult<()> {
        call!(self, timeline.wait_host(timeline, value, 1 << 62))
    }

    fn fill(&self, place: Memory, offset: u64, bytes: u64, value: u8) -> PhysResult<bool> {
        let host = self.host(place)?;
        if host.is_null() {
            return Ok(false);
        }
        // SAFETY: the block lies in this memory, and nobody works on it.
        unsafe { std::ptr::write_bytes(host.add(offset as usize), value, bytes as usize) };
        Ok(true)
    }

    fn differs(
        &self,
        place: Memory,
        offset: u64,
        bytes: u64,
        value: u8,
    ) -> PhysResult<Option<u64>> {
        let host = self.host(place)?;
        if host.is_null() {
            return Ok(None);
        }
        for at in offset..offset + bytes {
            // SAFETY: as in `fill`; a late writer may race, so each byte is
            // read as it is at that moment.
            if unsafe { host.add(at as usize).read_volatile() } != value {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }
}
