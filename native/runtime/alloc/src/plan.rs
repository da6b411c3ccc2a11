//! Offline placement: every request of a trace gets an offset, known lifetimes
//! in hand, so that blocks alive together do not overlap.
//!
//! The largest blocks are placed first, each at the lowest offset that is free
//! for its whole life ("greedy by size", Pisarchyk and Lee, "Efficient memory
//! management for deep neural net inference", 2020). The lower bound is the
//! most bytes alive at once: no placement needs less.

use crate::replay::{Action, Record};

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
/// Slices of the trace in which placed blocks are looked up.
const SLICES: usize = 2048;

struct Life {
    born: usize,
    died: usize,
    bytes: u64,
}

fn lives(trace: &[Record]) -> Vec<Life> {
    let mut lives: Vec<Life> = Vec::new();
    let mut open = std::collections::HashMap::new();
    for (now, record) in trace.iter().enumerate() {
        match record.action() {
            Some(Action::Allocate) if record.bytes > 0 => {
                open.insert(record.address, lives.len());
                let bytes = (record.bytes + UNIT - 1) / UNIT * UNIT;
                lives.push(Life { born: now, died: trace.len(), bytes });
            }
            Some(Action::Free) => {
                if let Some(index) = open.remove(&record.address) {
                    lives[index].died = now;
                }
            }
            _ => {}
        }
    }
    lives
}

/// Plans a trace. Requests of no bytes take no place.
pub fn plan(trace: &[Record]) -> Plan {
    let lives = lives(trace);
    let mut order: Vec<usize> = (0..lives.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(lives[i].bytes), lives[i].born));
    let slice = trace.len() / SLICES + 1;
    let mut placed: Vec<Vec<(u64, u64, usize)>> = vec![Vec::new(); SLICES + 1];
    let mut plan = Plan { offsets: vec![0; lives.len()], ..Plan::default() };
    let mut near: Vec<(u64, u64)> = Vec::new();
    for index in order {
        let life = &lives[index];
        near.clear();
        let slices = life.born / slice..=(life.died - 1) / slice;
        for (nth, list) in placed[slices.clone()].iter().enumerate() {
            for &(at, bytes, other) in list {
                let first_seen = nth == 0 || lives[other].born / slice == slices.start() + nth;
                let together = lives[other].born < life.died && life.born < lives[other].died;
                if first_seen && together {
                    near.push((at, bytes));
                }
            }
        }
        near.sort_unstable();
        let mut at = 0;
        for &(start, bytes) in &near {
            if start >= at + life.bytes {
                break;
            }
            at = at.max(start + bytes);
        }
        plan.offsets[index] = at;
        plan.bytes = plan.bytes.max(at + life.bytes);
        for list in &mut placed[slices] {
            list.push((at, life.bytes, index));
        }
    }
    plan.lower_bound = most_alive(trace, &lives);
    plan
}

fn most_alive(trace: &[Record], lives: &[Life]) -> u64 {
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
    most as u64
}
