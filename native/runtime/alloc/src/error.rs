//! What can go wrong, as the caller sees it.

use std::fmt;

/// A refusal. The text of each is one sentence with the offending value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The request cannot be served; what there was, and what would have fitted.
    OutOfMemory(Box<Shortage>),
    /// A pool may not grow further; others are unaffected.
    Quota(Box<Shortage>),
    /// After `seal` the driver would have been called.
    SteadyState {
        /// The driver call that was about to happen.
        call: &'static str,
        /// The pool that asked for it.
        pool: &'static str,
    },
    /// A handle that is not of a live block.
    BadHandle {
        /// The handle as given.
        handle: u64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// An argument that makes no sense, and why.
    Invalid(String),
    /// The device refused or lost something.
    Device(String),
    /// The host has no memory for metadata.
    HostMemory,
    /// A fault of this code; the allocator is disabled.
    Internal(String),
}

/// The state of a pool when a request failed, bytes throughout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shortage {
    /// The pool's name.
    pub pool: &'static str,
    /// Bytes asked for.
    pub requested: u64,
    /// Bytes the pool holds from the device.
    pub reserved: u64,
    /// Bytes in live blocks.
    pub allocated: u64,
    /// Bytes freed that lie in quick bins of streams of other threads.
    pub quick: u64,
    /// The largest block that would have fitted at once.
    pub largest_free: u64,
    /// Freed bytes that wait for work on another stream.
    pub pending: u64,
    /// The pool's quota; 0 without.
    pub quota: u64,
    /// What the device said.
    pub device: String,
}

/// Shorthand used throughout the crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Shortage {
    fn remedy(&self) -> String {
        if self.pending >= self.requested {
            return "wait for the streams that still use freed blocks".into();
        }
        if self.quota > 0 && self.reserved + self.requested > self.quota {
            return format!("raise the quota of `{}`, or free blocks", self.pool);
        }
        if self.quick > 0 && self.quick + self.largest_free >= self.requested {
            return "flush or close the idle streams of other threads".into();
        }
        let free = self.reserved.saturating_sub(self.allocated + self.quick);
        if free >= self.requested {
            return "free bytes are scattered: allow address mapping, or allocate the largest \
                    blocks first"
                .into();
        }
        "free blocks, or ask for less".into()
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes do not fit in pool `{}`: {} reserved, {} allocated, largest free block {}, \
             {} waiting for other streams",
            self.requested,
            self.pool,
            self.reserved,
            self.allocated,
            self.largest_free,
            self.pending
        )?;
        if self.quick > 0 {
            write!(f, ", {} in quick bins of other threads", self.quick)?;
        }
        if self.quota > 0 {
            write!(f, ", quota {}", self.quota)?;
        }
        if !self.device.is_empty() {
            write!(f, " ({})", self.device)?;
        }
        write!(f, "; {}", self.remedy())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::OutOfMemory(s) => write!(f, "out of memory: {s}"),
            Error::Quota(s) => write!(f, "over the quota: {s}"),
            Error::SteadyState { call, pool } => {
                write!(f, "sealed: pool `{pool}` would call the driver ({call})")
            }
            Error::BadHandle { handle, why } => write!(f, "block {handle:#x}: {why}"),
            Error::Invalid(text) | Error::Device(text) => f.write_str(text),
            Error::HostMemory => f.write_str("the host has no memory for the allocator's tables"),
            Error::Internal(text) => write!(f, "a fault of the allocator: {text}"),
        }
    }
}

impl std::error::Error for Error {}
