//! NVIDIA devices by their driver alone, for a process that has its own CUDA
//! program: PyTorch with our allocator. `libcuda.so.1` is opened by name when
//! the first device is asked for.
//!
//! A timeline here is a stream of that program. Nobody signals values on it, so
//! progress is found on demand: when somebody asks how far the stream is, an event
//! is recorded the next time that the program names the stream. Only then is it
//! known to be there: the driver may crash when it is asked about a stream that
//! was destroyed. What is never named again has passed when the whole context was
//! waited for, which a request does before it fails. No event a free.

use std::ffi::{c_void, CStr};
use std::os::raw::{c_char, c_int, c_uint};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Mutex;

use crate::lock::locked;
use crate::phys::{Memory, Phys, PhysError, PhysResult};

const OUT_OF_MEMORY: c_int = 2;
const NOT_READY: c_int = 600;
const EVENT_DISABLE_TIMING: c_uint = 2;
const LOCATION_DEVICE: c_int = 1;
const ALLOCATION_PINNED: c_int = 1;
const ACCESS_READ_WRITE: c_int = 3;
/// What every device with virtual memory maps at least.
pub const PIECE_BYTES: u64 = 2 << 20;

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Location {
    kind: c_int,
    id: c_int,
}

/// `CUmemAllocationProp`, 32 bytes.
#[repr(C)]
struct Properties {
    kind: c_int,
    handle_types: c_int,
    location: Location,
    win32: *mut c_void,
    flags: [u8; 8],
}

/// `CUmemAccessDesc`.
#[repr(C)]
struct Access {
    location: Location,
    flags: c_int,
}

extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Declares the driver's functions and the table that finds them.
macro_rules! driver {
    ($($name:ident = $symbol:literal ( $($argument:ty),* );)*) => {
        #[derive(Clone, Copy)]
        #[allow(clippy::type_complexity)]
        struct Driver { $($name: unsafe extern "C" fn($($argument),*) -> c_int,)* }

        impl Driver {
            fn load() -> Result<Driver, String> {
                // SAFETY: the names are terminated; RTLD_NOW is 2.
                let library = unsafe { dlopen(b"libcuda.so.1\0".as_ptr().cast(), 2) };
                if library.is_null() {
                    return Err("libcuda.so.1 is not on this machine".into());
                }
                Ok(Driver { $($name: {
                    // SAFETY: as above; the driver's header gives the type.
                    unsafe {
                        let found = dlsym(library, concat!($symbol, "\0").as_ptr().cast());
                        if found.is_null() {
                            return Err(concat!("libcuda.so.1 has no ", $symbol).into());
                        }
                        std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> c_int>(found)
                    }
                },)* })
            }
        }
    };
}

driver! {
    init = "cuInit"(c_uint);
    device_get = "cuDeviceGet"(*mut c_int, c_int);
    context_retain = "cuDevicePrimaryCtxRetain"(*mut *mut c_void, c_int);
    context_get = "cuCtxGetCurrent"(*mut *mut c_void);
    context_set = "cuCtxSetCurrent"(*mut c_void);
    error_name = "cuGetErrorName"(c_int, *mut *const c_char);
    address_reserve = "cuMemAddressReserve"(*mut u64, usize, usize, u64, u64);
    address_free = "cuMemAddressFree"(u64, usize);
    memory_create = "cuMemCreate"(*mut u64, usize, *const Properties, u64);
    memory_release = "cuMemRelease"(u64);
    memory_map = "cuMemMap"(u64, usize, usize, u64, u64);
    memory_unmap = "cuMemUnmap"(u64, usize);
    memory_access = "cuMemSetAccess"(u64, usize, *const Access, usize);
    memory_allocate = "cuMemAlloc_v2"(*mut u64, usize);
    memory_free = "cuMemFree_v2"(u64);
    stream_capturing = "cuStreamIsCapturing"(*mut c_void, *mut c_int);
    context_synchronize = "cuCtxSynchronize"();
    event_create = "cuEventCreate"(*mut *mut c_void, c_uint);
    event_record = "cuEventRecord"(*mut c_void, *mut c_void);
    event_query = "cuEventQuery"(*mut c_void);
}

/// How far one stream is known to be.
struct Progress {
    stream: usize,
    /// Somebody asked: an event is to be recorded when the program names the stream.
    wanted: &'static AtomicBool,
    event: usize,
    /// The event stands behind this value, when it is recorded.
    covers: u64,
    recorded: bool,
    submitted: &'static AtomicU64,
    done: u64,
}

/// A timeline as its user sees it; as old as the process.
pub struct Timeline {
    /// Its number.
    pub number: u64,
    /// Its last value.
    pub submitted: &'static AtomicU64,
    /// Whether `Cuda::seen` is to be called when its stream is named.
    pub wanted: &'static AtomicBool,
}

/// A device of this process.
pub struct Cuda {
    driver: Driver,
    context: usize,
    device: c_int,
    streams: Mutex<Vec<Progress>>,
}

/// The thread's own context, to be current again.
struct Entered<'a>(&'a Cuda, *mut c_void);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        // SAFETY: what was current in `enter`.
        unsafe { (self.0.driver.context_set)(self.1) };
    }
}

impl Cuda {
    /// The device of an ordinal, in its primary context.
    pub fn open(ordinal: i32) -> Result<Cuda, String> {
        let driver = Driver::load()?;
        let (mut device, mut context) = (0, std::ptr::null_mut());
        // SAFETY: the pointers live through the calls.
        let status = unsafe {
            match (driver.init)(0) {
                0 => match (driver.device_get)(&mut device, ordinal) {
                    0 => (driver.context_retain)(&mut context, device),
                    bad => bad,
                },
                bad => bad,
            }
        };
        let made = Cuda { driver, context: context as usize, device, streams: Mutex::new(vec![]) };
        match status {
            0 => Ok(made),
            bad => Err(format!("device {ordinal} does not open: {}", made.name(bad))),
        }
    }

    /// A timeline over a stream of the program.
    pub fn timeline(&self, stream: usize) -> PhysResult<Timeline> {
        let mut event = std::ptr::null_mut();
        self.call(|driver| unsafe { (driver.event_create)(&mut event, EVENT_DISABLE_TIMING) })?;
        let submitted: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
        let wanted: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
        let mut streams = self.streams();
        streams.push(Progress {
            stream,
            wanted,
            event: event as usize,
            covers: 0,
            recorded: false,
            submitted,
            done: 0,
        });
        Ok(Timeline { number: streams.len() as u64 - 1, submitted, wanted })
    }

    /// For a stream that the program names now: records the event that somebody waits for,
    /// behind what was submitted until now.
    #[cold]
    pub fn seen(&self, timeline: u64) -> PhysResult<()> {
        let mut streams = self.streams();
        let progress = match streams.get_mut(timeline as usize) {
            Some(progress) => progress,
            None => return Ok(()),
        };
        // Read before the event: what it counts was submitted by then.
        let submitted = progress.submitted.load(Ordering::Acquire);
        let stream = progress.stream as *mut c_void;
        if progress.recorded || progress.done >= submitted {
            progress.wanted.store(false, Ordering::Relaxed);
            return Ok(());
        }
        let mut capturing = 0;
        self.call(|d| unsafe { (d.stream_capturing)(stream, &mut capturing) })?;
        if capturing != 0 {
            // It would become a part of the program's graph.
            return Ok(());
        }
        let event = progress.event as *mut c_void;
        self.call(|d| unsafe { (d.event_record)(event, stream) })?;
        progress.recorded = true;
        progress.covers = submitted;
        progress.wanted.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Puts a timeline over another stream. What it knew of the old one has passed then.
    pub fn move_to(&self, timeline: u64, stream: usize) -> PhysResult<()> {
        self.wait_all()?;
        if let Some(progress) = self.streams().get_mut(timeline as usize) {
            progress.stream = stream;
        }
        Ok(())
    }

    /// Waits for everything that was submitted to any stream until now.
    fn wait_all(&self) -> PhysResult<()> {
        let mut streams = self.streams();
        let before: Vec<u64> =
            streams.iter().map(|progress| progress.submitted.load(Ordering::Acquire)).collect();
        self.call(|d| unsafe { (d.context_synchronize)() })?;
        for (progress, submitted) in streams.iter_mut().zip(before) {
            progress.done = progress.done.max(submitted);
            progress.recorded = false;
        }
        Ok(())
    }

    fn streams(&self) -> std::sync::MutexGuard<'_, Vec<Progress>> {
        locked(&self.streams)
    }

    fn name(&self, status: c_int) -> String {
        let mut text = std::ptr::null();
        // SAFETY: the driver gives a constant text, or null.
        unsafe {
            (self.driver.error_name)(status, &mut text);
            if text.is_null() {
                return format!("CUDA error {status}");
            }
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }

    fn enter(&self) -> Entered<'_> {
        let mut own = std::ptr::null_mut();
        // SAFETY: our context was retained and is never released.
        unsafe {
            (self.driver.context_get)(&mut own);
            (self.driver.context_set)(self.context as *mut c_void);
        }
        Entered(self, own)
    }

    fn call(&self, run: impl FnOnce(&Driver) -> c_int) -> PhysResult<()> {
        let _inside = self.enter();
        match run(&self.driver) {
            0 => Ok(()),
            OUT_OF_MEMORY => Err(PhysError::NoMemory(self.name(OUT_OF_MEMORY))),
            bad => Err(PhysError::Failed(self.name(bad))),
        }
    }
}

impl Phys for Cuda {
    fn piece_bytes(&self) -> u64 {
        PIECE_BYTES
    }

    fn create(&self, bytes: u64) -> PhysResult<Memory> {
        let mut address = 0;
        self.call(|d| unsafe { (d.memory_allocate)(&mut address, bytes as usize) })?;
        Ok(Memory { handle: address, address })
    }

    fn create_piece(&self, bytes: u64) -> PhysResult<u64> {
        let wanted = Properties {
            kind: ALLOCATION_PINNED,
            handle_types: 0,
            location: Location { kind: LOCATION_DEVICE, id: self.device },
            win32: std::ptr::null_mut(),
            flags: [0; 8],
        };
        let mut handle = 0;
        self.call(|d| unsafe { (d.memory_create)(&mut handle, bytes as usize, &wanted, 0) })?;
        // Handles and plain addresses share one space of names: an address has
        // the low bits of its alignment clear, so the last one tells them apart.
        Ok(handle << 1 | 1)
    }

    fn release(&self, handle: u64) -> PhysResult<()> {
        if handle & 1 == 1 {
            return self.call(|d| unsafe { (d.memory_release)(handle >> 1) });
        }
        self.call(|d| unsafe { (d.memory_free)(handle) })
    }

    fn reserve(&self, bytes: u64) -> PhysResult<u64> {
        let mut address = 0;
        let piece = PIECE_BYTES as usize;
        self.call(|d| unsafe { (d.address_reserve)(&mut address, bytes as usize, piece, 0, 0) })?;
        Ok(address)
    }

    fn unreserve(&self, address: u64, bytes: u64) -> PhysResult<()> {
        self.call(|d| unsafe { (d.address_free)(address, bytes as usize) })
    }

    fn map(&self, address: u64, handle: u64, bytes: u64) -> PhysResult<()> {
        let location = Location { kind: LOCATION_DEVICE, id: self.device };
        let access = Access { location, flags: ACCESS_READ_WRITE };
        let bytes = bytes as usize;
        self.call(|d| unsafe {
            match (d.memory_map)(address, bytes, 0, handle >> 1, 0) {
                0 => match (d.memory_access)(address, bytes, &access, 1) {
                    0 => 0,
                    bad => {
                        (d.memory_unmap)(address, bytes);
                        bad
                    }
                },
                bad => bad,
            }
        })
    }

    fn unmap(&self, address: u64, bytes: u64) -> PhysResult<()> {
        self.call(|d| unsafe { (d.memory_unmap)(address, bytes as usize) })
    }

    fn completed(&self, timeline: u64) -> PhysResult<u64> {
        let mut streams = self.streams();
        let progress = match streams.get_mut(timeline as usize) {
            Some(progress) => progress,
            None => return Ok(0),
        };
        if progress.recorded {
            let event = progress.event as *mut c_void;
            let _inside = self.enter();
            // SAFETY: the event is ours.
            match unsafe { (self.driver.event_query)(event) } {
                0 => {
                    progress.done = progress.done.max(progress.covers);
                    progress.recorded = false;
                }
                NOT_READY => return Ok(progress.done),
                bad => return Err(PhysError::Failed(self.name(bad))),
            }
        }
        if progress.done < progress.submitted.load(Ordering::Acquire) {
            progress.wanted.store(true, Ordering::Relaxed);
        }
        Ok(progress.done)
    }

    fn wait(&self, timeline: u64, value: u64) -> PhysResult<()> {
        if self.completed(timeline)? < value {
            self.wait_all()?;
        }
        Ok(())
    }

    fn fill(&self, _: Memory, _: u64, _: u64, _: u8) -> PhysResult<bool> {
        Ok(false)
    }

    fn differs(&self, _: Memory, _: u64, _: u64, _: u8) -> PhysResult<Option<u64>> {
        Ok(None)
    }
}

// The sizes of the driver's structures, by its header.
const _: () = {
    use std::mem::size_of;
    assert!(size_of::<Properties>() == 32);
    assert!(size_of::<Access>() == 12);
};
