//! Memory behind reserved addresses: growth, and remap.
//!
//! The arena's addresses are one long reservation. Pieces of memory, all of one
//! size, lie behind part of it; a `Hole` is a block of addresses without
//! memory. A request that fits no free block gets a run of neighbouring free
//! blocks and holes, and the missing pieces come from the device or from free
//! blocks elsewhere. So scattered free memory serves one large request, and
//! live addresses never move.

use std::collections::HashMap;

use crate::arena::{Arena, Ground};
use crate::block::{Index, State, NIL};
use crate::error::{Error, Result};
use crate::fence::device;
use crate::gate::{Call, Gate};
use crate::phys::{Phys, PhysResult};

/// The reservation of an arena.
pub struct Map {
    /// First address.
    pub base: u64,
    /// Bytes of addresses.
    pub bytes: u64,
    /// Bytes of a piece.
    pub piece: u64,
    /// The first block.
    pub first: Index,
    pieces: HashMap<u64, u64>,
}

/// A run of addresses set aside for a request, partly without memory.
pub struct Site {
    /// The block that covers it, in no bin.
    pub block: Index,
    /// Numbers of the pieces that it lacks.
    pub missing: Vec<u64>,
}

impl Map {
    /// Reserves addresses; all of them are a hole.
    pub fn new(g: Ground, arena: &Arena, bytes: u64, piece: u64) -> PhysResult<Result<Map>> {
        let base = g.phys.reserve(bytes)?;
        Ok(g.slab.claim().map(|first| {
            g.slab.at(first).begin(base, bytes, arena.place, State::Hole);
            Map { base, bytes, piece, first, pieces: HashMap::new() }
        }))
    }

    /// Bytes of memory behind it.
    pub fn backed(&self) -> u64 {
        self.pieces.len() as u64 * self.piece
    }

    /// Finds the run for `need` bytes that lacks the fewest pieces, and sets it
    /// aside. None when the addresses are used up.
    pub fn site(
        &mut self,
        g: Ground,
        arena: &mut Arena,
        need: u64,
        stream: u32,
    ) -> Result<Option<Site>> {
        let mut best: Option<(u64, Index)> = None;
        let mut start = self.first;
        while start != NIL {
            if self.usable(g, start, stream) {
                if let Some(lacking) = self.lacking(g, start, need, stream) {
                    if best.map_or(true, |(least, _)| lacking < least) {
                        best = Some((lacking, start));
                    }
                }
            }
            start = g.slab.at(start).after.get();
        }
        match best {
            Some((_, start)) => self.set_aside(g, arena, start, need, stream).map(Some),
            None => Ok(None),
        }
    }

    fn usable(&self, g: Ground, index: Index, stream: u32) -> bool {
        let block = g.slab.at(index);
        match block.state() {
            State::Hole => true,
            State::Free => block.stream.get() == stream || g.idle(block),
            _ => false,
        }
    }

    /// Bytes without memory among the `need` bytes from a block on.
    fn lacking(&self, g: Ground, start: Index, need: u64, stream: u32) -> Option<u64> {
        let (mut index, mut left, mut lacking) = (start, need, 0);
        while index != NIL && self.usable(g, index, stream) {
            let block = g.slab.at(index);
            let here = block.bytes.get().min(left);
            if block.state() == State::Hole {
                lacking += (here + self.piece - 1) / self.piece * self.piece;
            }
            left -= here;
            if left == 0 {
                return Some(lacking);
            }
            index = block.after.get();
        }
        None
    }

    fn set_aside(
        &mut self,
        g: Ground,
        arena: &mut Arena,
        start: Index,
        need: u64,
        stream: u32,
    ) -> Result<Site> {
        let mut missing = Vec::new();
        // What is not idle belongs to the asking stream: one fence covers all.
        let mut fence = 0;
        let mut index = start;
        let mut had = 0;
        while had < need {
            let block = g.slab.at(index);
            let (state, left) = (block.state(), need - had);
            if state == State::Free {
                arena.bins.take(g.slab, block);
                if !g.idle(block) {
                    fence = fence.max(block.fence.get());
                }
            } else {
                let whole = (left + self.piece - 1) / self.piece * self.piece;
                if block.bytes.get() > whole {
                    arena.split(g, index, whole)?;
                }
                let first = (block.address.get() - self.base) / self.piece;
                missing.extend(first..first + block.bytes.get() / self.piece);
            }
            had += g.slab.at(index).bytes.get();
            block.set_state(State::Pending);
            if index != start {
                arena.join(g, start);
            }
            index = g.slab.at(start).after.get();
        }
        let block = g.slab.at(start);
        block.stream.set(stream);
        block.fence.set(fence);
        Ok(Site { block: start, missing })
    }

    /// Puts one spare piece behind a site that lacks some.
    pub fn fill(
        &mut self,
        phys: &dyn Phys,
        site: &mut Site,
        spare: &mut Vec<u64>,
    ) -> PhysResult<()> {
        if let (Some(&number), Some(&handle)) = (site.missing.last(), spare.last()) {
            phys.map(self.base + number * self.piece, handle, self.piece)?;
            self.pieces.insert(number, handle);
            site.missing.pop();
            spare.pop();
        }
        Ok(())
    }

    /// Undoes `site`: what has memory is free again, the rest a hole.
    pub fn abandon(&mut self, g: Ground, arena: &mut Arena, site: &Site) -> Result<()> {
        let mut index = site.block;
        loop {
            let block = g.slab.at(index);
            let (from, bytes) = (block.address.get() - self.base, block.bytes.get());
            let hole = |at: u64| site.missing.contains(&(at / self.piece));
            let here = hole(from);
            let mut end = from / self.piece * self.piece + self.piece;
            while end < from + bytes && hole(end) == here {
                end += self.piece;
            }
            let rest =
                if end < from + bytes { Some(arena.split(g, index, end - from)?) } else { None };
            if here {
                self.dig(g, arena, index);
            } else {
                arena.put(g, index);
            }
            match rest {
                Some(next) => index = next,
                None => return Ok(()),
            }
        }
    }

    /// Makes a block in no bin a hole; joins it with holes beside it.
    fn dig(&mut self, g: Ground, arena: &mut Arena, index: Index) {
        let block = g.slab.at(index);
        block.set_state(State::Hole);
        block.fence.set(0);
        let (before, after) = (block.before.get(), block.after.get());
        if after != NIL && g.slab.at(after).state() == State::Hole {
            arena.join(g, index);
        }
        if before != NIL && g.slab.at(before).state() == State::Hole {
            arena.join(g, before);
        }
    }

    /// Free blocks with whole pieces in them that nobody can be using.
    pub fn donors(&self, g: Ground) -> Result<Vec<(u64, Index)>> {
        let mut donors = Vec::new();
        let mut index = self.first;
        while index != NIL {
            let block = g.slab.at(index);
            if block.state() == State::Free && self.inner(g, index).is_some() && g.passed(index)? {
                donors.push((block.bytes.get(), index));
            }
            index = block.after.get();
        }
        Ok(donors)
    }

    /// The whole pieces inside a block: first number and one past the last.
    fn inner(&self, g: Ground, index: Index) -> Option<(u64, u64)> {
        let block = g.slab.at(index);
        let from = block.address.get() - self.base;
        let (first, end) =
            ((from + self.piece - 1) / self.piece, (from + block.bytes.get()) / self.piece);
        if first < end {
            Some((first, end))
        } else {
            None
        }
    }

    /// Takes up to `most` pieces out of a free block; their addresses become a
    /// hole. The block had `donors`' word for it.
    pub fn withdraw(
        &mut self,
        g: Ground,
        gate: &mut Gate,
        arena: &mut Arena,
        index: Index,
        most: u64,
    ) -> Result<Vec<u64>> {
        let (first, end) = match self.inner(g, index) {
            Some((first, end)) => (first.max(end.saturating_sub(most)), end),
            None => return Ok(Vec::new()),
        };
        let mut reached = end;
        let mut failure = None;
        while reached > first && failure.is_none() {
            gate.pass(Call::Unmap)?;
            match g.phys.unmap(self.base + (reached - 1) * self.piece, self.piece) {
                Ok(()) => reached -= 1,
                Err(error) => failure = Some(error),
            }
        }
        // What was unmapped before a failure is taken all the same.
        if let (true, Some(error)) = (reached == end, failure) {
            return Err(device(error));
        }
        let first = reached;
        let address = self.base + first * self.piece;
        let bytes = (end - first) * self.piece;
        let block = g.slab.at(index);
        arena.bins.take(g.slab, block);
        let head = address - block.address.get();
        let middle = if head > 0 {
            let middle = arena.split(g, index, head)?;
            arena.bins.put(g.slab, index, block);
            middle
        } else {
            index
        };
        if g.slab.at(middle).bytes.get() > bytes {
            let tail = arena.split(g, middle, bytes)?;
            arena.bins.put(g.slab, tail, g.slab.at(tail));
        }
        self.dig(g, arena, middle);
        let lost = || Error::Internal("a free block lies over no piece".into());
        let taken = (first..end).map(|number| self.pieces.remove(&number).ok_or_else(lost));
        taken.collect()
    }

    /// Gives all memory and addresses back.
    pub fn clear(&mut self, phys: &dyn Phys) -> PhysResult<()> {
        for (number, handle) in self.pieces.drain() {
            phys.unmap(self.base + number * self.piece, self.piece)?;
            phys.release(handle)?;
        }
        phys.unreserve(self.base, self.bytes)
    }
}
