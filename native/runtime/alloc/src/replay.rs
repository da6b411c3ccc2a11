//! Runs a trace through a policy and says what it held.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::policy::Policy;

/// What a record does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A request.
    Allocate,
    /// The end of one.
    Free,
    /// What streams did meanwhile: nothing to a placement.
    Work,
}

/// One line of a trace: the 40 bytes of a `.bpt` record, little-endian.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Record {
    /// Since the trace began.
    pub time_ns: u64,
    /// What names the block between its request and its free.
    pub address: u64,
    /// Bytes asked for; a free may say 0.
    pub bytes: u64,
    /// The stream, by number.
    pub stream: u32,
    /// 1 is a request, 2 a free; 3 work, 4 a use told, 5 a wait of the host.
    pub action: u8,
    /// The pool, by number.
    pub pool: u8,
    /// The thread, by number.
    pub thread: u16,
    /// Zero.
    pub padding: u64,
}

impl Record {
    /// The action, if it is one.
    pub fn action(&self) -> Option<Action> {
        match self.action {
            1 => Some(Action::Allocate),
            2 => Some(Action::Free),
            3..=5 => Some(Action::Work),
            _ => None,
        }
    }
}

/// What came of a replay, bytes throughout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Outcome {
    /// The most that was asked for at once.
    pub live_peak: u64,
    /// The most that was held from the device.
    pub reserved_peak: u64,
    /// Held at the end.
    pub reserved_end: u64,
    /// Requests.
    pub requests: u64,
    /// Requests that failed for lack of memory.
    pub out_of_memory: u64,
    /// Calls that a driver would have seen.
    pub driver_calls: u64,
}

/// The most that one request may ask for: a policy rounds it up and adds to it.
pub const MOST_SIZE: u64 = 1 << 62;

/// Replays. `see` gets each record's number, where its block lies (0 for a
/// request that failed), and what is reserved after it.
pub fn replay(
    trace: &[Record],
    policy: &mut dyn Policy,
    mut see: impl FnMut(usize, u64, u64),
) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut open: HashMap<u64, (u64, u64, u64)> = HashMap::new();
    let mut live = 0u64;
    for (number, record) in trace.iter().enumerate() {
        let mut at = 0;
        match record.action() {
            Some(Action::Allocate) => {
                outcome.requests += 1;
                if record.bytes > MOST_SIZE {
                    return Err(bad(number, "a request of more than 2^62 bytes"));
                }
                if record.bytes > 0 {
                    match policy.allocate(record.bytes, record.stream) {
                        Ok((name, place)) => {
                            at = place;
                            let entry = (name, place, record.bytes);
                            if open.insert(record.address, entry).is_some() {
                                return Err(bad(number, "a block that is already live"));
                            }
                            live = live
                                .checked_add(record.bytes)
                                .ok_or_else(|| bad(number, "more than 2^64 live bytes"))?;
                        }
                        Err(Error::OutOfMemory(_)) => outcome.out_of_memory += 1,
                        Err(other) => return Err(other),
                    }
                }
            }
            Some(Action::Free) => {
                if let Some((name, place, bytes)) = open.remove(&record.address) {
                    policy.free(name)?;
                    at = place;
                    live -= bytes;
                }
            }
            Some(Action::Work) => {}
            None => return Err(bad(number, "an unknown action")),
        }
        let reserved = policy.reserved();
        outcome.live_peak = outcome.live_peak.max(live);
        outcome.reserved_peak = outcome.reserved_peak.max(reserved);
        see(number, at, reserved);
    }
    outcome.reserved_end = policy.reserved();
    outcome.driver_calls = policy.driver_calls();
    Ok(outcome)
}

fn bad(number: usize, what: &str) -> Error {
    Error::Invalid(format!("record {number} of the trace is {what}"))
}
