//! A model of PyTorch's caching allocator in its default setting, from its
//! documentation and published behaviour: sizes in units of 512 bytes, requests
//! up to 1 MiB in segments of 2 MiB, up to 10 MiB in segments of 20 MiB, above
//! in their own, rounded to 2 MiB; best fit within a stream; a large block is
//! split when more than 1 MiB is left; segments go back only when the device is
//! full. Whether the model is valid for a trace is told by the recording's own
//! peak: see `bedplate.runtime.replay`.

use std::collections::{BTreeSet, HashMap};

use super::{behind, full, Placed, Policy};
use crate::error::{Error, Result};

const UNIT: u64 = 512;
const SMALL: u64 = 1 << 20;
const SMALL_SEGMENT: u64 = 2 << 20;
const LARGE_BELOW: u64 = 10 << 20;
const LARGE_SEGMENT: u64 = 20 << 20;
const STEP: u64 = 2 << 20;

#[derive(Clone, Copy)]
struct Piece {
    bytes: u64,
    before: Option<u64>,
    after: Option<u64>,
    key: (u32, bool),
    free: bool,
}

/// See the module.
pub struct PyTorch {
    capacity: u64,
    reserved: u64,
    next: u64,
    calls: u64,
    pieces: HashMap<u64, Piece>,
    free: HashMap<(u32, bool), BTreeSet<(u64, u64)>>,
}

impl PyTorch {
    /// On a device of `capacity` bytes.
    pub fn new(capacity: u64) -> Self {
        PyTorch {
            capacity,
            reserved: 0,
            next: STEP,
            calls: 0,
            pieces: HashMap::new(),
            free: HashMap::new(),
        }
    }

    fn segment(&mut self, bytes: u64, key: (u32, bool)) -> Result<u64> {
        let size = match bytes {
            _ if key.1 => SMALL_SEGMENT,
            b if b < LARGE_BELOW => LARGE_SEGMENT,
            b => (b + STEP - 1) / STEP * STEP,
        };
        if self.reserved + size > self.capacity {
            self.give_back();
        }
        if self.reserved + size > self.capacity {
            return Err(full(self.capacity, bytes));
        }
        let next = behind(self.next, size + STEP)?;
        self.calls += 1;
        self.reserved += size;
        let at = self.next;
        self.next = next;
        self.pieces.insert(at, Piece { bytes: size, before: None, after: None, key, free: false });
        Ok(at)
    }

    fn give_back(&mut self) {
        for set in self.free.values_mut() {
            let pieces = &self.pieces;
            let whole: Vec<_> = set
                .iter()
                .copied()
                .filter(|(_, at)| pieces[at].before.is_none() && pieces[at].after.is_none())
                .collect();
            for (bytes, at) in whole {
                set.remove(&(bytes, at));
                self.pieces.remove(&at);
                self.reserved -= bytes;
                self.calls += 1;
            }
        }
    }

    fn join(&mut self, first: u64, second: u64) {
        let gone = self.pieces.remove(&second).expect("a neighbour exists");
        let piece = self.pieces.get_mut(&first).expect("a neighbour exists");
        piece.bytes += gone.bytes;
        piece.after = gone.after;
        if let Some(after) = gone.after {
            self.pieces.get_mut(&after).expect("a neighbour exists").before = Some(first);
        }
    }

    fn take_free(&mut self, at: Option<u64>) -> Option<u64> {
        let at = at?;
        let piece = self.pieces[&at];
        if !piece.free {
            return None;
        }
        self.free.entry(piece.key).or_default().remove(&(piece.bytes, at));
        Some(at)
    }
}

impl Policy for PyTorch {
    fn allocate(&mut self, bytes: u64, stream: u32) -> Result<Placed> {
        let size = (bytes + UNIT - 1) / UNIT * UNIT;
        let key = (stream, size <= SMALL);
        let found = self.free.entry(key).or_default().range((size, 0)..).next().copied();
        let at = match found {
            Some((held, at)) => {
                self.free.entry(key).or_default().remove(&(held, at));
                at
            }
            None => self.segment(size, key)?,
        };
        let piece = self.pieces.get_mut(&at).expect("found or made");
        piece.free = false;
        let left = piece.bytes - size;
        if left >= UNIT && (key.1 || left > SMALL) {
            piece.bytes = size;
            let (rest, after) = (at + size, piece.after);
            piece.after = Some(rest);
            self.pieces
                .insert(rest, Piece { bytes: left, before: Some(at), after, key, free: true });
            if let Some(after) = after {
                self.pieces.get_mut(&after).expect("a neighbour exists").before = Some(rest);
            }
            self.free.entry(key).or_default().insert((left, rest));
        }
        Ok((at, at))
    }

    fn free(&mut self, name: u64) -> Result<()> {
        let piece = *self
            .pieces
            .get(&name)
            .filter(|piece| !piece.free)
            .ok_or(Error::BadHandle { handle: name, why: "not live" })?;
        let mut at = name;
        if let Some(after) = self.take_free(piece.after) {
            self.join(at, after);
        }
        if let Some(before) = self.take_free(piece.before) {
            self.join(before, at);
            at = before;
        }
        let joined = self.pieces.get_mut(&at).expect("just joined");
        joined.free = true;
        let bytes = joined.bytes;
        self.free.entry(piece.key).or_default().insert((bytes, at));
        Ok(())
    }

    fn reserved(&self) -> u64 {
        self.reserved
    }

    fn driver_calls(&self) -> u64 {
        self.calls
    }
}
