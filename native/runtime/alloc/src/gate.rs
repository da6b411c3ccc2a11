//! The one door to the driver: counts its calls, and shuts after `seal`.

use crate::error::{Error, Result};

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

/// The door of one pool.
pub struct Gate {
    /// The pool's name, for the refusal.
    pub pool: &'static str,
    /// How it stands.
    pub seal: Seal,
    /// Calls made, waits included.
    pub calls: u64,
    /// Calls asked for while sealed.
    pub sealed_calls: u64,
    /// Of `calls`, waits on the host.
    pub waits: u64,
}

impl Gate {
    /// An open door.
    pub fn new(pool: &'static str) -> Self {
        Gate { pool, seal: Seal::Open, calls: 0, sealed_calls: 0, waits: 0 }
    }

    /// Before every driver call.
    pub fn pass(&mut self, call: &'static str) -> Result<()> {
        if self.seal != Seal::Open {
            self.sealed_calls += 1;
        }
        if self.seal == Seal::Refuse {
            return Err(Error::SteadyState { call, pool: self.pool });
        }
        self.calls += 1;
        self.waits += u64::from(call == "wait");
        Ok(())
    }
}
