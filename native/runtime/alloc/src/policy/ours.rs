//! The allocator itself, on a device of numbers.

use std::collections::HashMap;

use super::{Placed, Policy};
use crate::allocator::Allocator;
use crate::conf::{Config, WIDE_PIECE};
use crate::error::Result;
use crate::fake::Fake;

const POOL: u32 = 2;

/// See the module.
pub struct Ours {
    allocator: Allocator,
    streams: HashMap<u32, u32>,
}

impl Ours {
    /// As under PyTorch, whose traces these mostly are: with address mapping, or without.
    pub fn new(capacity: u64, mapping: bool) -> Result<Ours> {
        let device = Fake::new(capacity, 2 << 20);
        let config = Config { mapping, piece: WIDE_PIECE, ..Config::default() };
        Ok(Ours { allocator: Allocator::new(Box::new(device), config)?, streams: HashMap::new() })
    }
}

impl Policy for Ours {
    fn allocate(&mut self, bytes: u64, stream: u32) -> Result<Placed> {
        let own = match self.streams.get(&stream) {
            Some(&own) => own,
            None => {
                let own = self.allocator.open_stream(u64::from(stream), 0)?;
                self.streams.insert(stream, own);
                own
            }
        };
        let got = self.allocator.allocate(POOL, bytes, own)?;
        Ok((got.handle, got.address))
    }

    fn free(&mut self, name: u64) -> Result<()> {
        self.allocator.free(name)
    }

    fn reserved(&self) -> u64 {
        self.allocator.reserved(POOL as usize)
    }

    fn driver_calls(&self) -> u64 {
        self.allocator.stats(POOL).map_or(0, |stats| stats.driver_calls)
    }
}
