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
    /// What went through a quick bin: `served` was freed and added again, `idle`
    /// lies in it, which the pool counts as current.
    pub fn pass(&mut self, served: u64, idle: u64) {
        self.allocated += served;
        self.current = self.current.wrapping_sub(idle);
        self.freed = self.allocated.wrapping_sub(self.current);
    }
}

/// A figure as it is kept: what was freed is what was added and is not there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Level {
    /// Now.
    pub current: u64,
    /// The most it was.
    pub peak: u64,
    /// All that was added.
    pub allocated: u64,
}

impl Level {
    /// Adds.
    #[inline]
    pub fn add(&mut self, amount: u64) {
        self.current = self.current.wrapping_add(amount);
        self.allocated += amount;
        self.peak = self.peak.max(self.current);
    }

    /// Takes away.
    #[inline]
    pub fn sub(&mut self, amount: u64) {
        self.current = self.current.wrapping_sub(amount);
    }

    /// Adds or takes away what is lacking to an amount.
    pub fn set(&mut self, amount: u64) {
        self.add(amount.saturating_sub(self.current));
        self.sub(self.current.saturating_sub(amount));
    }

    /// As it is told.
    pub fn figure(&self) -> Figure {
        let Level { current, peak, allocated } = *self;
        Figure { current, peak, allocated, freed: allocated.wrapping_sub(current) }
    }
}

/// A peak that quick bins take part in, which no lock guards: it is looked at when
/// the pool passes `ceiling`, or a stream its floor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Peak {
    /// The most that was live.
    pub bytes: i64,
    /// What the pool may count before the peak could be passed.
    pub ceiling: i64,
}

impl Peak {
    /// The pool counts `out`, and `idle` of it lies in quick bins; the bytes left up
    /// to the peak.
    pub fn note(&mut self, out: i64, idle: i64) -> i64 {
        self.bytes = self.bytes.max(out - idle);
        self.bytes - (out - idle)
    }
}

/// What a pool's lock guards of a side.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Blocks out of the arena.
    pub allocation: Level,
    /// Bytes in them.
    pub allocated_bytes: Level,
    /// Bytes in them, as asked when they went out.
    pub requested_bytes: Level,
    /// Bytes held from the device.
    pub reserved_bytes: Level,
    /// Segments, or pieces.
    pub segment: Level,
    /// Bytes freed that wait for other streams.
    pub waiting_bytes: u64,
    /// The peak of allocated and waiting bytes, as far as there were waiting ones.
    active_peak: u64,
}

impl Tally {
    /// A block went out.
    #[inline]
    pub fn give(&mut self, bytes: u64, requested: u64) {
        self.allocation.add(1);
        self.allocated_bytes.add(bytes);
        self.requested_bytes.add(requested);
        if self.waiting_bytes > 0 {
            let active = self.allocated_bytes.current + self.waiting_bytes;
            self.active_peak = self.active_peak.max(active);
        }
    }

    /// A block came back.
    #[inline]
    pub fn take(&mut self, bytes: u64, requested: u64) {
        self.allocation.sub(1);
        self.allocated_bytes.sub(bytes);
        self.requested_bytes.sub(requested);
    }

    /// As it is told, but for what the arena and the quick bins know.
    pub fn side(&self) -> Side {
        let live = &self.allocated_bytes;
        let active = Level {
            current: live.current + self.waiting_bytes,
            peak: self.active_peak.max(live.peak),
            allocated: live.allocated,
        };
        Side {
            allocation: self.allocation.figure(),
            reserved_bytes: self.reserved_bytes.figure(),
            allocated_bytes: live.figure(),
            requested_bytes: self.requested_bytes.figure(),
            active_bytes: active.figure(),
            segment: self.segment.figure(),
        }
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
    /// Bytes in live blocks, as asked.
    pub requested_bytes: Figure,
    /// Bytes live, or waiting for other streams.
    pub active_bytes: Figure,
}

/// Calls of the driver by what they do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Calls {
    /// Memory made.
    pub create: u64,
    /// Memory given back.
    pub release: u64,
    /// Memory put behind addresses.
    pub map: u64,
    /// And taken from behind them.
    pub unmap: u64,
    /// Waits on the host.
    pub wait: u64,
}

impl Calls {
    /// All of them.
    pub fn sum(&self) -> u64 {
        self.create + self.release + self.map + self.unmap + self.wait
    }
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
    /// Calls asked for after `seal`, refused ones too.
    pub sealed_calls: u64,
    /// Waits on the host, made or refused.
    pub waits: u64,
    /// Requests that failed for want of memory.
    pub out_of_memory: u64,
    /// Bytes moved by remap.
    pub remapped_bytes: u64,
    /// The peak of both sides' allocated bytes together.
    pub allocated_peak_bytes: u64,
    /// The peak of both sides' reserved bytes together.
    pub reserved_peak_bytes: u64,
    /// Bytes the pool may reserve; 0 without a quota.
    pub quota_bytes: u64,
    /// Searches that began again: quick bins were emptied, or streams waited for.
    pub retries: u64,
    /// Calls of the driver asked for before `seal`.
    pub open: Calls,
    /// And after it.
    pub sealed: Calls,
}
