//! Memory in segments that stand where the device put them: for devices that
//! cannot map. A segment with nothing live in it can be given back.

use crate::arena::{Arena, Ground};
use crate::block::{Index, State, NIL};
use crate::error::Result;
use crate::phys::{Memory, PhysResult};

/// The least segment for small requests, bytes.
const SMALL: u64 = 2 << 20;
/// The least segment for requests above 1 MiB, bytes.
const LARGE: u64 = 20 << 20;
/// Larger segments are multiples of it.
const STEP: u64 = 2 << 20;

/// One segment.
#[derive(Clone, Copy)]
pub struct Segment {
    /// The device's memory.
    pub memory: Memory,
    /// Its first block's address: the device's, or a number of ours where the
    /// device has none.
    pub base: u64,
    /// Its size.
    pub bytes: u64,
    /// Its first block; the segment is gone with NIL.
    pub first: Index,
}

/// The segments of an arena.
#[derive(Default)]
pub struct Plain {
    /// By the number that blocks carry.
    pub segments: Vec<Segment>,
    backed: u64,
}

/// The size of a new segment for a request.
pub fn segment_bytes(need: u64, small: bool) -> u64 {
    if small {
        SMALL
    } else if need < LARGE / 2 {
        LARGE
    } else {
        (need + STEP - 1) / STEP * STEP
    }
}

impl Plain {
    /// Bytes in segments.
    pub fn backed(&self) -> u64 {
        self.backed
    }

    /// Adds a segment; its block is in no bin.
    pub fn add(&mut self, g: Ground, arena: &Arena, bytes: u64) -> Result<PhysResult<Index>> {
        let first = g.slab.claim()?;
        let memory = match g.phys.create(bytes) {
            Ok(memory) => memory,
            Err(error) => {
                g.slab.vacate(first);
                return Ok(Err(error));
            }
        };
        let vacant = self.segments.iter().position(|segment| segment.first == NIL);
        let number = vacant.unwrap_or(self.segments.len());
        let of_ours = (u64::from(arena.place) << 24 | (number as u64 + 1)) << 36;
        let base = if memory.address != 0 { memory.address } else { of_ours };
        let segment = Segment { memory, base, bytes, first };
        match vacant {
            Some(number) => self.segments[number] = segment,
            None => self.segments.push(segment),
        }
        let block = g.slab.at(first);
        block.begin(base, bytes, arena.place, State::Pending);
        block.segment.set(number as u32);
        self.backed += bytes;
        Ok(Ok(first))
    }

    /// Numbers of the segments that are one free block nobody can be using.
    pub fn empty(&self, g: Ground) -> Result<Vec<usize>> {
        let mut empty = Vec::new();
        for (number, segment) in self.segments.iter().enumerate() {
            if segment.first != NIL {
                let block = g.slab.at(segment.first);
                let whole = block.state() == State::Free && block.bytes.get() == segment.bytes;
                if whole && g.passed(segment.first)? {
                    empty.push(number);
                }
            }
        }
        Ok(empty)
    }

    /// Gives an empty segment back to the device.
    pub fn remove(&mut self, g: Ground, arena: &mut Arena, number: usize) -> PhysResult<u64> {
        let segment = self.segments[number];
        g.phys.release(segment.memory.handle)?;
        arena.bins.take(g.slab, g.slab.at(segment.first));
        g.slab.vacate(segment.first);
        self.segments[number].first = NIL;
        self.backed -= segment.bytes;
        Ok(segment.bytes)
    }
}
