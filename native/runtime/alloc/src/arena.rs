//! An arena: tiles of memory, free ones in bins. Splits, coalesces, finds;
//! where the memory comes from is `map`'s or `plain`'s business.
//!
//! Blocks tile their segment without gaps. A free block remembers the stream
//! that used it last and the value that stream must reach before anybody else
//! may touch it. Two free neighbours join when one wait covers both: they are
//! of one stream, or one of them has already passed.

use crate::bin::Bins;
use crate::block::{Block, Index, Slab, State, NIL};
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
    #[inline]
    pub fn idle(&self, block: &Block) -> bool {
        self.streams.seen(Fence { stream: block.stream.get(), value: block.fence.get() })
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
    pub place: u8,
    /// A segment with nothing in it serves a request only when it is at most this
    /// many thousandths of it: one small block would keep all of it from going
    /// back. `u64::MAX` where segments do not go back.
    pub whole_milli: u64,
}

impl Arena {
    /// An arena without memory.
    pub fn new(unit: u64, place: u8, whole_milli: u64) -> Self {
        Arena { bins: Bins::new(unit), unit, vacant: NIL, place, whole_milli }
    }

    /// A free block that `stream` may use now, out of its bin and cut to
    /// `bytes`; its state is the caller's to set.
    #[inline]
    pub fn take<'a>(
        &mut self,
        g: Ground<'a>,
        bytes: u64,
        stream: u32,
    ) -> Result<Option<(Index, &'a Block)>> {
        let most = if self.whole_milli == u64::MAX {
            u64::MAX
        } else {
            bytes.saturating_mul(self.whole_milli) / 1000
        };
        let usable = |block: &Block| {
            (block.stream.get() == stream || g.idle(block))
                && (block.bytes.get() <= most
                    || block.before.get() != NIL
                    || block.after.get() != NIL)
        };
        let (bin, index, block) = match self.bins.find(g.slab, bytes, usable) {
            Some(found) => found,
            None => return Ok(None),
        };
        if block.bytes.get() - bytes < self.unit {
            self.bins.take_from(bin, g.slab, block);
            return Ok(Some((index, block)));
        }
        // What is left over had no neighbour to join as part of the whole.
        let rest = self.claim(g)?;
        self.bins.take_from(bin, g.slab, block);
        self.divide(g, (index, block), rest, bytes);
        self.bins.put(g.slab, rest, g.slab.at(rest));
        Ok(Some((index, block)))
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
    #[inline]
    fn claim(&mut self, g: Ground) -> Result<Index> {
        if self.vacant == NIL {
            let index = g.slab.claim()?;
            g.slab.at(index).place.set(self.place);
            return Ok(index);
        }
        let index = self.vacant;
        self.vacant = g.slab.at(index).next.get();
        Ok(index)
    }

    /// Divides a block that is in no bin; returns the part after `bytes`, which
    /// has the same stream, fence and state.
    pub fn split(&mut self, g: Ground, index: Index, bytes: u64) -> Result<Index> {
        let rest = self.claim(g)?;
        self.divide(g, (index, g.slab.at(index)), rest, bytes);
        Ok(rest)
    }

    /// As `split`, the part after `bytes` being described by `rest`.
    #[inline]
    fn divide(&self, g: Ground, (index, first): (Index, &Block), rest: Index, bytes: u64) {
        let second = g.slab.at(rest);
        let after = first.after.get();
        second.address.set(first.address.get() + bytes);
        second.bytes.set(first.bytes.get() - bytes);
        second.stream.set(first.stream.get());
        second.fence.set(first.fence.get());
        second.segment.set(first.segment.get());
        second.before.set(index);
        second.after.set(after);
        second.set_state(first.state());
        first.bytes.set(bytes);
        first.after.set(rest);
        if after != NIL {
            g.slab.at(after).before.set(rest);
        }
    }

    /// Joins a block with the one after it; both are in no bin. The second
    /// description becomes vacant.
    pub fn join(&mut self, g: Ground, index: Index) {
        let first = g.slab.at(index);
        let gone = first.after.get();
        self.absorb(g, (index, first), (gone, g.slab.at(gone)));
    }

    #[inline]
    fn absorb(
        &mut self,
        g: Ground,
        (index, first): (Index, &Block),
        (gone, second): (Index, &Block),
    ) {
        if first.stream.get() == second.stream.get() {
            first.fence.set(first.fence.get().max(second.fence.get()));
        } else if g.idle(first) {
            first.stream.set(second.stream.get());
            first.fence.set(second.fence.get());
        }
        let after = second.after.get();
        first.bytes.add(second.bytes.get());
        first.after.set(after);
        if after != NIL {
            g.slab.at(after).before.set(index);
        }
        second.set_state(State::Vacant);
        second.next.set(self.vacant);
        self.vacant = gone;
    }

    /// Whether two neighbours are free and one wait covers both.
    pub fn joinable(&self, g: Ground, one: Index, other: Index) -> bool {
        if one == NIL || other == NIL {
            return false;
        }
        let (a, b) = (g.slab.at(one), g.slab.at(other));
        a.state() == State::Free && Self::joins(g, a, b)
    }

    /// Whether a free block's neighbour is free, and one wait covers both.
    #[inline]
    fn joins(g: Ground, free: &Block, other: &Block) -> bool {
        other.state() == State::Free
            && (free.stream.get() == other.stream.get() || g.idle(free) || g.idle(other))
    }

    /// Makes a block free: joins it with its neighbours and puts it in its bin.
    /// Its stream and fence are set.
    #[inline]
    pub fn put(&mut self, g: Ground, index: Index) {
        let block = g.slab.at(index);
        block.set_state(State::Free);
        let after = block.after.get();
        if after != NIL {
            let above = g.slab.at(after);
            if Self::joins(g, block, above) {
                self.bins.take(g.slab, above);
                self.absorb(g, (index, block), (after, above));
            }
        }
        let before = block.before.get();
        if before != NIL {
            let below = g.slab.at(before);
            if Self::joins(g, block, below) {
                self.bins.take(g.slab, below);
                self.absorb(g, (before, below), (index, block));
                return self.bins.put(g.slab, before, below);
            }
        }
        self.bins.put(g.slab, index, block);
    }

    /// Joins the neighbours from `first` on that fences kept apart.
    pub fn settle(&mut self, g: Ground, first: Index) -> Result<()> {
        let mut index = first;
        while index != NIL {
            let block = g.slab.at(index);
            let after = block.after.get();
            let above = if after == NIL { block } else { g.slab.at(after) };
            if after != NIL
                && block.state() == State::Free
                && above.state() == State::Free
                && (block.stream.get() == above.stream.get()
                    || g.passed(index)?
                    || g.passed(after)?)
            {
                self.bins.take(g.slab, block);
                self.bins.take(g.slab, above);
                self.absorb(g, (index, block), (after, above));
                self.bins.put(g.slab, index, block);
            } else {
                index = after;
            }
        }
        Ok(())
    }
}
