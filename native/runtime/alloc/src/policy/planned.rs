//! Placement by a plan made from the whole trace beforehand.

use super::{Placed, Policy};
use crate::error::{Error, Result};
use crate::plan::{plan, Plan};
use crate::replay::Record;

/// See the module.
pub struct Planned {
    plan: Plan,
    next: usize,
}

impl Planned {
    /// Plans the trace; its requests must then come in its order.
    pub fn new(trace: &[Record]) -> Self {
        Planned { plan: plan(trace), next: 0 }
    }
}

impl Policy for Planned {
    fn allocate(&mut self, _bytes: u64, _stream: u32) -> Result<Placed> {
        let offset = *self
            .plan
            .offsets
            .get(self.next)
            .ok_or_else(|| Error::Invalid("a request that the plan does not know".into()))?;
        self.next += 1;
        Ok((self.next as u64, offset))
    }

    fn free(&mut self, _name: u64) -> Result<()> {
        Ok(())
    }

    fn reserved(&self) -> u64 {
        self.plan.bytes
    }

    fn driver_calls(&self) -> u64 {
        1
    }
}
