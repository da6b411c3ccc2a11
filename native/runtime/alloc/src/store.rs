//! Where a pool's memory comes from: mapped pieces, or plain segments.
//!
//! Small requests (to 1 MiB) and large ones have an arena each, so that a long
//! life of few bytes does not pin memory that a large request could have; the
//! pieces behind them move between the two.

use crate::arena::{Arena, Ground};
use crate::block::{Block, Index, NIL};
use crate::conf::Config;
use crate::error::{Error, Result, Shortage};
use crate::fence::device;
use crate::gate::{Call, Gate};
use crate::map::{Map, Site};
use crate::phys::PhysError;
use crate::plain::{segment_bytes, Plain};

/// How far a request may go.
#[derive(Clone, Copy)]
pub struct Limits {
    /// Bytes the pool may hold at most; 0 without limit.
    pub quota: u64,
    /// Bytes it may hold before it uses memory that it already has.
    pub soft: u64,
}

impl Limits {
    fn allows(&self, bytes: u64) -> bool {
        self.quota == 0 || bytes <= self.quota
    }
}

/// The two arenas of a pool and what lies behind them.
pub struct Store {
    /// Small requests, large requests.
    pub arenas: [Arena; 2],
    kind: Kind,
    /// Bytes that remap moved.
    pub moved: u64,
}

enum Kind {
    Mapped { maps: [Map; 2], spare: Vec<u64>, piece: u64 },
    Plain([Plain; 2]),
}

fn no_memory(text: String) -> Error {
    Error::OutOfMemory(Box::new(Shortage { device: text, ..Shortage::default() }))
}

fn over_quota() -> Error {
    Error::Quota(Box::default())
}

impl Store {
    /// Without memory. `addresses` of 0 takes plain segments; `piece` is a
    /// multiple of what the device can map.
    pub fn new(
        g: Ground,
        config: &Config,
        number: u32,
        addresses: u64,
        piece: u64,
    ) -> Result<Store> {
        let whole = |side| if addresses == 0 && side == 1 { config.whole_milli } else { u64::MAX };
        let arenas =
            [0, 1].map(|side| Arena::new(config.unit, (number << 1 | side) as u8, whole(side)));
        let kind = if addresses == 0 {
            Kind::Plain([Plain::default(), Plain::default()])
        } else {
            let make = |side: usize| {
                let bytes = addresses / piece * piece;
                Map::new(g, &arenas[side], bytes, piece).map_err(device)?
            };
            Kind::Mapped { maps: [make(0)?, make(1)?], spare: Vec::new(), piece }
        };
        Ok(Store { arenas, kind, moved: 0 })
    }

    /// Whether memory moves between addresses.
    pub fn is_mapped(&self) -> bool {
        matches!(self.kind, Kind::Mapped { .. })
    }

    /// Bytes held from the device for either side; spare pieces count as large.
    pub fn reserved_by(&self) -> [u64; 2] {
        match &self.kind {
            Kind::Mapped { maps, spare, piece } => {
                [maps[0].backed(), maps[1].backed() + spare.len() as u64 * piece]
            }
            Kind::Plain(plains) => [plains[0].backed(), plains[1].backed()],
        }
    }

    /// Bytes in blocks: of what is held, all but spare pieces.
    pub fn in_blocks(&self) -> u64 {
        match &self.kind {
            Kind::Mapped { maps, .. } => maps.iter().map(Map::backed).sum(),
            Kind::Plain(_) => self.reserved(),
        }
    }

    /// Bytes held from the device.
    pub fn reserved(&self) -> u64 {
        self.reserved_by().iter().sum()
    }

    /// Pieces or segments.
    pub fn segments(&self, side: usize) -> u64 {
        match &self.kind {
            Kind::Mapped { maps, piece, .. } => maps[side].backed() / piece,
            Kind::Plain(plains) => {
                plains[side].segments.iter().filter(|s| s.first != NIL).count() as u64
            }
        }
    }

    /// The first block of every segment, with its side.
    pub fn firsts(&self) -> Vec<(usize, Index)> {
        match &self.kind {
            Kind::Mapped { maps, .. } => vec![(0, maps[0].first), (1, maps[1].first)],
            Kind::Plain(plains) => (0..2)
                .flat_map(|side| plains[side].segments.iter().map(move |s| (side, s.first)))
                .filter(|(_, first)| *first != NIL)
                .collect(),
        }
    }

    /// Notes where in the device's memory a block lies, unless addresses name it.
    #[inline]
    pub fn moor(&self, g: Ground, index: Index, block: &Block) {
        if let Kind::Plain(plains) = &self.kind {
            let side = (block.place.get() & 1) as usize;
            let segment = &plains[side].segments[block.segment.get() as usize];
            let anchor = g.slab.anchor(index);
            anchor.memory.set(segment.memory.handle);
            anchor.offset.set(block.address.get() - segment.base);
        }
    }

    /// Joins what fences kept apart.
    pub fn settle(&mut self, g: Ground, which: usize) -> Result<()> {
        for (side, first) in self.firsts() {
            if side == which {
                self.arenas[which].settle(g, first)?;
            }
        }
        Ok(())
    }

    /// A block of `bytes` from new or moved memory, in no bin.
    pub fn grow(
        &mut self,
        g: Ground,
        gate: &mut Gate,
        which: usize,
        need: (u64, u32),
        limits: Limits,
    ) -> Result<Index> {
        let (bytes, stream) = need;
        if let Kind::Plain(plains) = &mut self.kind {
            let size = segment_bytes(bytes, which == 0);
            let index = segment(g, gate, plains, &mut self.arenas, which, (bytes, size), limits)?;
            self.arenas[which].cut(g, index, bytes)?;
            return Ok(index);
        }
        let site = match &mut self.kind {
            Kind::Mapped { maps, .. } => {
                maps[which].site(g, &mut self.arenas[which], bytes, stream)?
            }
            Kind::Plain(_) => None,
        };
        let mut site = site.ok_or_else(|| no_memory("its addresses are used up".into()))?;
        let before = self.reserved();
        if let Err(error) = self.back(g, gate, which, &mut site, limits) {
            self.undo(g, gate, which, &site, before)?;
            return Err(error);
        }
        self.arenas[which].cut(g, site.block, bytes)?;
        Ok(site.block)
    }

    /// Puts memory behind a site.
    fn back(
        &mut self,
        g: Ground,
        gate: &mut Gate,
        which: usize,
        site: &mut Site,
        limits: Limits,
    ) -> Result<()> {
        let wanted = site.missing.len();
        self.create(g, gate, wanted, Limits { quota: limits.soft.max(1), ..limits }, limits)?;
        self.collect(g, gate, wanted)?;
        self.create(g, gate, wanted, limits, limits)?;
        if let Kind::Mapped { maps, spare, .. } = &mut self.kind {
            if spare.len() < wanted {
                return Err(over_quota());
            }
            for _ in 0..wanted {
                gate.pass(Call::Map)?;
                maps[which].fill(g.phys, site, spare).map_err(device)?;
            }
        }
        Ok(())
    }

    /// New pieces until `wanted` are spare or a limit is reached. The device's
    /// own limit is an error only within the true ones.
    fn create(
        &mut self,
        g: Ground,
        gate: &mut Gate,
        wanted: usize,
        within: Limits,
        truly: Limits,
    ) -> Result<()> {
        let last = within.quota == truly.quota;
        let mut reserved = self.reserved();
        if let Kind::Mapped { spare, piece, .. } = &mut self.kind {
            while spare.len() < wanted
                && within.allows(reserved + *piece)
                && truly.allows(reserved + *piece)
            {
                gate.pass(Call::Create)?;
                match g.phys.create_piece(*piece) {
                    Ok(handle) => spare.push(handle),
                    Err(PhysError::NoMemory(text)) if last => return Err(no_memory(text)),
                    Err(PhysError::NoMemory(_)) => return Ok(()),
                    Err(PhysError::Failed(text)) => return Err(Error::Device(text)),
                }
                reserved += *piece;
            }
        }
        Ok(())
    }

    /// Takes pieces out of free blocks until `wanted` are spare: from the
    /// smallest blocks first, which leaves large ones whole.
    fn collect(&mut self, g: Ground, gate: &mut Gate, wanted: usize) -> Result<()> {
        if let Kind::Mapped { maps, spare, piece } = &mut self.kind {
            if spare.len() >= wanted {
                return Ok(());
            }
            let mut donors = Vec::new();
            for (side, map) in maps.iter().enumerate() {
                donors.extend(map.donors(g)?.into_iter().map(|(bytes, i)| (bytes, side, i)));
            }
            donors.sort_unstable();
            for (_, side, index) in donors {
                let most = wanted - spare.len();
                if most == 0 {
                    break;
                }
                let arena = &mut self.arenas[side];
                let taken = maps[side].withdraw(g, gate, arena, index, most as u64)?;
                self.moved += taken.len() as u64 * *piece;
                spare.extend(taken);
            }
        }
        Ok(())
    }

    /// After a failure: the site is as it was, new pieces go back.
    fn undo(
        &mut self,
        g: Ground,
        gate: &mut Gate,
        which: usize,
        site: &Site,
        before: u64,
    ) -> Result<()> {
        if let Kind::Mapped { maps, .. } = &mut self.kind {
            maps[which].abandon(g, &mut self.arenas[which], site)?;
        }
        let over = self.reserved().saturating_sub(before);
        if let Kind::Mapped { spare, piece, .. } = &mut self.kind {
            for _ in 0..over / *piece {
                gate.note(Call::Release);
                // A piece that the device does not take back stays spare.
                match spare.last().map(|&handle| g.phys.release(handle)) {
                    Some(Ok(())) => spare.pop(),
                    _ => break,
                };
            }
        }
        Ok(())
    }

    /// Gives back memory with nothing in it; bytes given back.
    pub fn trim(&mut self, g: Ground, gate: &mut Gate) -> Result<u64> {
        let before = self.reserved();
        for side in 0..2 {
            self.settle(g, side)?;
        }
        match &mut self.kind {
            Kind::Plain(plains) => {
                for (side, plain) in plains.iter_mut().enumerate() {
                    for number in plain.empty(g)? {
                        gate.pass(Call::Release)?;
                        plain.remove(g, &mut self.arenas[side], number).map_err(device)?;
                    }
                }
            }
            Kind::Mapped { .. } => {
                self.collect(g, gate, usize::MAX)?;
                if let Kind::Mapped { spare, .. } = &mut self.kind {
                    while let Some(&handle) = spare.last() {
                        gate.pass(Call::Release)?;
                        g.phys.release(handle).map_err(device)?;
                        spare.pop();
                    }
                }
            }
        }
        Ok(before - self.reserved())
    }

    /// Gives everything back, live blocks too.
    pub fn clear(&mut self, g: Ground) -> Result<()> {
        match &mut self.kind {
            Kind::Plain(plains) => {
                for segment in plains.iter_mut().flat_map(|plain| plain.segments.drain(..)) {
                    if segment.first != NIL {
                        g.phys.release(segment.memory.handle).map_err(device)?;
                    }
                }
            }
            Kind::Mapped { maps, spare, .. } => {
                for map in maps.iter_mut() {
                    map.clear(g.phys).map_err(device)?;
                }
                for handle in spare.drain(..) {
                    g.phys.release(handle).map_err(device)?;
                }
            }
        }
        Ok(())
    }
}

/// A new plain segment, after giving back empty ones when the pool is over its
/// limit or the device is full.
fn segment(
    g: Ground,
    gate: &mut Gate,
    plains: &mut [Plain; 2],
    arenas: &mut [Arena; 2],
    which: usize,
    (need, size): (u64, u64),
    limits: Limits,
) -> Result<Index> {
    let held = |plains: &[Plain; 2]| plains[0].backed() + plains[1].backed();
    let mut empty = Vec::new();
    for (side, plain) in plains.iter().enumerate() {
        let found = plain.empty(g)?;
        empty.extend(found.into_iter().map(|n| (plain.segments[n].bytes, side, n)));
    }
    // The smallest first: they serve the fewest requests.
    empty.sort_unstable_by(|a, b| b.cmp(a));
    let mut size = size;
    loop {
        let total = held(plains) + size;
        let text = if total > limits.soft && !empty.is_empty() {
            String::new()
        } else if !limits.allows(total) {
            if empty.is_empty() {
                return Err(over_quota());
            }
            String::new()
        } else {
            gate.pass(Call::Create)?;
            match plains[which].add(g, &arenas[which], size)? {
                Ok(index) => return Ok(index),
                Err(PhysError::NoMemory(text)) => text,
                Err(PhysError::Failed(text)) => return Err(Error::Device(text)),
            }
        };
        if let Some((_, side, number)) = empty.pop() {
            gate.pass(Call::Release)?;
            plains[side].remove(g, &mut arenas[side], number).map_err(device)?;
        } else if size > segment_bytes(need, false).min(need + (2 << 20)) {
            size = (need + (2 << 20) - 1) >> 21 << 21;
        } else {
            return Err(no_memory(text));
        }
    }
}
