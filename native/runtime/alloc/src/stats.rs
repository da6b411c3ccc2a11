//! What a pool counts, under PyTorch's names where PyTorch has one.

/// One number over its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Figure {
    /// Now.
    pub current: u64,
    /// The most it was.
    pub peak: u64,
    /// All that was added.
    pub allocated: u64,
    /// All that was taken away.
    pub freed: u64,
}

impl Figure {
    /// Adds.
    #[inline]
    pub fn add(&mut self, amount: u64) {
        self.current += amount;
        self.allocated += amount;
        self.peak = self.peak.max(self.current);
    }

    /// Takes away.
    #[inline]
    pub fn sub(&mut self, amount: u64) {
        self.current -= amount;
        self.freed += amount;
    }
}

/// The figures of small requests, or of large ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Side {
    /// Live blocks.
    pub allocation: Figure,
    /// Segments, or pieces.
    pub segment: Figure,
    /// Bytes in segments or pieces.
    pub reserved_bytes: Figure,
    /// Bytes in live blocks, as cut.
    pub allocated_bytes: Figure,
    /// Bytes in live blocks, as asked; `current` alone, found when it is asked for.
    pub requested_bytes: Figure,
    /// Bytes live, or waiting for other streams.
    pub active_bytes: Figure,
}

/// All figures of a pool at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Stats {
    /// Requests up to 1 MiB.
    pub small: Side,
    /// Requests above.
    pub large: Side,
    /// The largest block that a request could get without the driver.
    pub largest_free_block_bytes: u64,
    /// Freed, and waiting for other streams.
    pub pending_free_bytes: u64,
    /// Free bytes beside live blocks of the same segment or piece.
    pub inactive_split_bytes: u64,
    /// Calls of the driver, waits included.
    pub driver_calls: u64,
    /// Of these, after `seal`.
    pub sealed_calls: u64,
    /// Waits on the host.
    pub waits: u64,
    /// Requests that failed.
    pub out_of_memory: u64,
    /// Bytes moved by remap.
    pub remapped_bytes: u64,
    /// The peak of both sides' allocated bytes together.
    pub allocated_peak_bytes: u64,
    /// The peak of both sides' reserved bytes together.
    pub reserved_peak_bytes: u64,
    /// Bytes the pool may reserve; 0 without a quota.
    pub quota_bytes: u64,
}
