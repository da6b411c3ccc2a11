//! Offline placement: every request of a trace gets an offset, known lifetimes
//! in hand, so that blocks alive together do not overlap.
//!
//! The largest blocks are placed first, each at the lowest offset that is free
//! for its whole life ("greedy by size", Pisarchyk and Lee, "Efficient memory
//! management for deep neural net inference", 2020). The lower bound is the
//! most bytes alive at once: no placement needs less.

use crate::error::{Error, Result};
use crate::replay::{Action, Record};
use crate::taken::Taken;

/// Where each request of a trace goes.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Offset of each request, in the order of the trace.
    pub offsets: Vec<u64>,
    /// Bytes that the placement needs.
    pub bytes: u64,
    /// The most bytes alive at once, in units.
    pub lower_bound: u64,
}

const UNIT: u64 = 512;

struct Life {
    born: usize,
    died: usize,
    bytes: u64,
}

fn lives(trace: &[Record]) -> Result<Vec<Life>> {
    let mut lives: Vec<Life> = Vec::new();
    let mut open = std::collections::HashMap::new();
    for (now, record) in trace.iter().enumerate() {
        match record.action() {
            Some(Action::Allocate) if record.bytes > 0 => {
                open.insert(record.address, lives.len());
                let bytes = record.bytes.checked_add(UNIT - 1).ok_or_else(too_large)?;
                lives.push(Life { born: now, died: trace.len(), bytes: bytes / UNIT * UNIT });
            }
            Some(Action::Free) => {
                if let Some(index) = open.remove(&record.address) {
                    lives[index].died = now;
                }
            }
            _ => {}
        }
    }
    Ok(lives)
}

/// What each request of a trace takes in its plan, bytes.
pub fn sizes(trace: &[Record]) -> Result<Vec<u64>> {
    Ok(lives(trace)?.iter().map(|life| life.bytes).collect())
}

fn too_large() -> Error {
    Error::Invalid("the requests of the trace reach beyond 2^64 bytes".into())
}

/// Plans a trace. Requests of no bytes take no place. An error when the placement
/// would reach beyond 2^64. Time is near N log N of N requests.
pub fn plan(trace: &[Record]) -> Result<Plan> {
    let lives = lives(trace)?;
    let mut order: Vec<usize> = (0..lives.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(lives[i].bytes), lives[i].born));
    let mut taken = Taken::new(lives.len());
    let mut plan = Plan { offsets: vec![0; lives.len()], ..Plan::default() };
    for index in order {
        let life = &lives[index];
        let cover = index..lives.partition_point(|other| other.born < life.died);
        let at = taken.lowest(cover.clone(), life.bytes).ok_or_else(too_large)?;
        taken.take(cover, at, life.bytes);
        plan.offsets[index] = at;
        plan.bytes = plan.bytes.max(at + life.bytes);
    }
    plan.lower_bound = most_alive(trace, &lives).ok_or_else(too_large)?;
    Ok(plan)
}

fn most_alive(trace: &[Record], lives: &[Life]) -> Option<u64> {
    let mut change = vec![0i128; trace.len() + 1];
    for life in lives {
        change[life.born] += i128::from(life.bytes);
        change[life.died] -= i128::from(life.bytes);
    }
    let (mut now, mut most) = (0, 0);
    for step in change {
        now += step;
        most = most.max(now);
    }
    u64::try_from(most).ok()
}
