//! An arena: tiles of memory, free ones in bins. Splits, coalesces, finds;
//! where the memory comes from is `map`'s or `plain`'s business.
//!
//! Blocks tile their segment without gaps. A free block remembers the stream
//! that used it last and the value that stream must reach before anybody else
//! may touch it. Two free neighbours join when one wait covers both: they are
//! of one stream, or one of them has already passed.

use crate::bin::Bins;
use crate::block::{Index, Slab, State, NIL};
use crate::error::Result;
use crate::fence::{Fence, Streams};
use crate::phys::Phys;

/// What every layer works on.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    /// Descriptions of blocks.
    pub slab: &'a Slab,
    /// Streams and their progress.
    pub streams: &'a Streams,
    /// The device.
    pub phys: &'a dyn Phys,
}

impl Ground<'_> {
    /// The fence of a free block.
    pub fn fence(&self, index: Index) -> Fence {
        let block = self.slab.at(index);
        Fence { stream: block.stream.get(), value: block.fence.get() }
    }

    /// Whether nobody can still be at work on a free block, as far as seen.
    pub fn idle(&self, index: Index) -> bool {
        self.streams.seen(self.fence(index))
    }

    /// As `idle`, asking the device.
    pub fn passed(&self, index: Index) -> Result<bool> {
        self.streams.passed(self.phys, self.fence(index))
    }
}

/// See the module.
pub struct Arena {
    /// Free blocks.
    pub bins: Bins,
    /// Sizes are multiples of it.
    pub unit: u64,
    vacant: Index,
    /// What its blocks carry as `place`.
    pub place: u32,
    /// A segment with nothing in it serves a request only when it is at most this
    /// many thousandths of it: one small block would keep all of it from going
    /// back. `u64::MAX` where segments do not go back.
    pub whole_milli: u64,
}

impl Arena {
    /// An arena without memory.
    pub fn new(unit: u64, place: u32, whole_milli: u64) -> Self {
        Arena { bins: Bins::new(unit), unit, vacant: NIL, place, whole_milli }
    }

    /// A free block that `stream` may use now, out of its bin and cut to
    /// `bytes`.
    pub fn take(&mut self, g: Ground, bytes: u64, stream: u32) -> Result<Option<Index>> {
        let whole_milli = self.whole_milli;
        let usable = |index: Index| {
            let block = g.slab.at(index);
            (block.stream.get() == stream || g.idle(index))
                && (block.bytes.get() <= bytes.saturating_mul(whole_milli) / 1000
                    || block.before.get() != NIL
                    || block.after.get() != NIL)
        };
        let found = self.bins.find(g.slab, bytes, usable);
        if let Some(index) = found {
            self.bins.take(g.slab, index);
            g.slab.at(index).set_state(State::Pending);
            self.cut(g, index, bytes)?;
        }
        Ok(found)
    }

    /// Cuts a block that is neither free nor in a bin; what is left over is free.
    pub fn cut(&mut self, g: Ground, index: Index, bytes: u64) -> Result<()> {
        let block = g.slab.at(index);
        if block.bytes.get() - bytes >= self.unit {
            let rest = self.split(g, index, bytes)?;
            self.put(g, rest);
        }
        Ok(())
    }

    /// A vacant description: one of the arena's own, which needs no lock.
    fn claim(&mut self, g: Ground) -> Result<Index> {
        if self.vacant == NIL {
            return g.slab.claim();
        }
        let index = self.vacant;
        self.vacant = g.slab.at(index).next.get();
        Ok(index)
    }

    fn vacate(&mut self, g: Ground, index: Index) {
        let block = g.slab.at(index);
        block.set_state(State::Vacant);
        block.shared.set(0);
        block.next.set(self.vacant);
        self.vacant = index;
    }

    /// Divides a block that is in no bin; returns the part after `bytes`, which
    /// has the same stream, fence and state.
    pub fn split(&mut self, g: Ground, index: Index, bytes: u64) -> Result<Index> {
        let rest = self.claim(g)?;
        let (first, second) = (g.slab.at(index), g.slab.at(rest));
        let after = first.after.get();
        second.address.set(first.address.get() + bytes);
        second.bytes.set(first.bytes.get() - bytes);
        second.stream.set(first.stream.get());
        second.fence.set(first.fence.get());
        second.segment.set(first.segment.get());
        second.place.set(self.place);
        second.before.set(index);
        second.after.set(after);
        second.set_state(first.state());
        first.bytes.set(bytes);
        first.after.set(rest);
        if after != NIL {
            g.slab.at(after).before.set(rest);
        }
        Ok(rest)
    }

    /// Joins a block with the one after it; both are in no bin. The second
    /// description becomes vacant.
    pub fn join(&mut self, g: Ground, index: Index) {
        let first = g.slab.at(index);
        let gone = first.after.get();
        let second = g.slab.at(gone);
        let same = first.stream.get() == second.stream.get();
        if same {
            first.fence.set(first.fence.get().max(second.fence.get()));
        } else if g.idle(index) {
            first.stream.set(second.stream.get());
            first.fence.set(second.fence.get());
        }
        let after = second.after.get();
        first.bytes.add(second.bytes.get());
        first.after.set(after);
        if after != NIL {
            g.slab.at(after).before.set(index);
        }
        self.vacate(g, gone);
    }

    /// Whether two neighbours are free and one wait covers both.
    pub fn joinable(&self, g: Ground, one: Index, other: Index) -> bool {
        if one == NIL || other == NIL {
            return false;
        }
        let (a, b) = (g.slab.at(one), g.slab.at(other));
        a.state() == State::Free
            && b.state() == State::Free
            && (a.stream.get() == b.stream.get() || g.idle(one) || g.idle(other))
    }

    /// Makes a block free: joins it with its neighbours and puts it in its bin.
    /// Its stream and fence are set. Returns what it became part of.
    pub fn put(&mut self, g: Ground, index: Index) -> Index {
        let mut index = index;
        g.slab.at(index).set_state(State::Free);
        let after = g.slab.at(index).after.get();
        if self.joinable(g, index, after) {
            self.bins.take(g.slab, after);
            self.join(g, index);
        }
        let before = g.slab.at(index).before.get();
        if self.joinable(g, before, index) {
            self.bins.take(g.slab, before);
            self.join(g, before);
            index = before;
        }
        self.bins.put(g.slab, index);
        index
    }

    /// Joins the neighbours from `first` on that fences kept apart.
    pub fn settle(&mut self, g: Ground, first: Index) -> Result<()> {
        let mut index = first;
        while index != NIL {
            let after = g.slab.at(index).after.get();
            if after != NIL
                && g.slab.at(index).state() == State::Free
                && g.slab.at(after).state() == State::Free
                && (g.slab.at(index).stream.get() == g.slab.at(after).stream.get()
                    || g.passed(index)?
                    || g.passed(after)?)
            {
                self.bins.take(g.slab, index);
                self.bins.take(g.slab, after);
                self.join(g, index);
                self.bins.put(g.slab, index);
            } else {
                index = after;
            }
        }
        Ok(())
    }
}
