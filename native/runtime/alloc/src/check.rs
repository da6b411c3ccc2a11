//! The rules of a pool at rest. Each names the block that breaks it.

use crate::arena::Ground;
use crate::block::{State, NIL};
use crate::pool::{walk, Pool};

/// Blocks tile their segments; no two free neighbours that one wait covers;
/// what lies in the bins is what is free; live bytes are what is counted;
/// allocated <= active <= reserved <= quota.
pub fn pool(g: Ground, pool: &Pool) -> Result<(), String> {
    let name = pool.gate.pool;
    let (mut free, mut live, mut pending) = ([0u64; 2], 0u64, 0u64);
    for (side, first) in pool.store.firsts() {
        let mut end = g.slab.at(first).address.get();
        let mut last = NIL;
        for index in walk(g, first) {
            let block = g.slab.at(index);
            let bytes = block.bytes.get();
            if block.address.get() != end || block.before.get() != last || bytes == 0 {
                return Err(format!("{name}: block {index} does not follow the one before it"));
            }
            match block.state() {
                State::Free => free[side] += bytes,
                State::Live | State::Quick => live += bytes,
                State::Pending | State::Quarantine => pending += bytes,
                State::Hole => {}
                State::Vacant => return Err(format!("{name}: block {index} is vacant")),
            }
            if pool.store.arenas[side].joinable(g, last, index) {
                return Err(format!("{name}: blocks {last} and {index} are free neighbours"));
            }
            end += bytes;
            last = index;
        }
    }
    for (arena, free) in pool.store.arenas.iter().zip(free) {
        let binned = arena.bins.audit(g.slab)?;
        if binned != free {
            return Err(format!("{name}: {free} bytes are free, {binned} in bins"));
        }
    }
    if live != pool.allocated() {
        return Err(format!("{name}: {live} bytes live, {} counted", pool.allocated()));
    }
    let reserved = pool.store.reserved();
    if live + pending + free[0] + free[1] > reserved {
        return Err(format!("{name}: more in blocks than the {reserved} bytes reserved"));
    }
    if free[0] + free[1] != pool.free_bytes() {
        let counted = pool.free_bytes();
        return Err(format!("{name}: {} bytes free, {counted} counted", free[0] + free[1]));
    }
    if pool.quota > 0 && reserved > pool.quota {
        return Err(format!("{name}: {reserved} bytes are over the quota of {}", pool.quota));
    }
    Ok(())
}
