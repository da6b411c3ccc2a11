//! The one door to the driver: counts its calls, and shuts after `seal`.

use crate::error::{Error, Result};
use crate::stats::Calls;

/// What happens to driver calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Seal {
    /// They are made.
    Open = 0,
    /// They are made, and counted as violations.
    Count = 1,
    /// They are refused, and counted.
    Refuse = 2,
}

/// A call of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Memory is made.
    Create,
    /// Memory goes back.
    Release,
    /// Memory is put behind addresses.
    Map,
    /// And taken from behind them.
    Unmap,
    /// The host waits for a stream.
    Wait,
}

impl Call {
    /// Its name in a refusal.
    pub fn name(self) -> &'static str {
        match self {
            Call::Create => "create",
            Call::Release => "release",
            Call::Map => "map",
            Call::Unmap => "unmap",
            Call::Wait => "wait",
        }
    }
}

/// The door of one pool.
pub struct Gate {
    /// The pool's name, for the refusal.
    pub pool: &'static str,
    /// How it stands.
    pub seal: Seal,
    /// Calls asked for while it was open.
    pub open_calls: Calls,
    /// Calls asked for while sealed.
    pub sealed_calls: Calls,
    /// Of those, calls that were refused.
    refused: u64,
}

impl Gate {
    /// An open door.
    pub fn new(pool: &'static str) -> Self {
        let (open_calls, sealed_calls) = (Calls::default(), Calls::default());
        Gate { pool, seal: Seal::Open, open_calls, sealed_calls, refused: 0 }
    }

    /// Before every driver call.
    pub fn pass(&mut self, call: Call) -> Result<()> {
        self.note(call);
        if self.seal == Seal::Refuse {
            self.refused += 1;
            return Err(Error::SteadyState { call: call.name(), pool: self.pool });
        }
        Ok(())
    }

    /// Counts a call that undoes another and may not be refused.
    pub fn note(&mut self, call: Call) {
        let calls =
            if self.seal == Seal::Open { &mut self.open_calls } else { &mut self.sealed_calls };
        *match call {
            Call::Create => &mut calls.create,
            Call::Release => &mut calls.release,
            Call::Map => &mut calls.map,
            Call::Unmap => &mut calls.unmap,
            Call::Wait => &mut calls.wait,
        } += 1;
    }

    /// Calls that were made.
    pub fn made(&self) -> u64 {
        self.open_calls.sum() + self.sealed_calls.sum() - self.refused
    }
}
