//! Random histories against a model that knows who may touch which byte.
//!
//! The model keeps every live range, and for freed ranges the moments until
//! which work on some stream may still touch them. The device runs its streams
//! in any order. A block given out must overlap nothing live, nothing that
//! another stream may still touch, and must have memory behind it. Seeds are
//! printed; OPERATIONS sets the length (make soak runs ten million).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bedplate_alloc::allocator::{Allocation, Allocator, NAMES};
use bedplate_alloc::conf::Config;
use bedplate_alloc::error::Error;
use bedplate_alloc::fake::Fake;
use bedplate_alloc::gate::Seal;
use bedplate_alloc::phys::Phys;
use bedplate_alloc::stats::{Figure, Stats};

const STREAMS: u32 = 3;
const POOL: u32 = 2;

/// xorshift64*, Vigna 2016.
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % below
    }
}

#[derive(Default)]
struct Model {
    live: BTreeMap<u64, (u64, u32)>,
    touched: Vec<(u64, u64, u32, u64)>,
}

impl Model {
    fn overlaps_live(&self, at: u64, bytes: u64) -> bool {
        self.live.range(..at + bytes).next_back().map_or(false, |(&a, &(b, _))| a + b > at)
    }

    fn check(&mut self, fake: &Fake, got: &Allocation, stream: u32, real: &[u64]) {
        let (at, end) = (got.address, got.address + got.bytes);
        assert!(!self.overlaps_live(at, got.bytes), "{got:?} overlaps a live block");
        assert!(fake.is_backed(at, got.bytes), "{got:?} has no memory behind it");
        let reached = |s: u32| fake.completed(real[s as usize]).unwrap();
        for &(a, e, s, value) in &self.touched {
            assert!(
                s == stream || e <= at || a >= end || reached(s) >= value,
                "{got:?} on {stream}: stream {s} works on it until {value}, is at {}",
                reached(s)
            );
        }
        self.touched.retain(|touch| reached(touch.2) < touch.3);
        self.live.insert(at, (got.bytes, stream));
    }
}

/// What the figures of requested bytes, and the peak of live ones, must say.
#[derive(Default)]
struct Asked {
    sides: [Figure; 2],
    live: u64,
    live_peak: u64,
}

impl Asked {
    fn give(&mut self, bytes: u64, cut: u64) {
        let side = &mut self.sides[usize::from(bytes > 1 << 20)];
        side.current += bytes;
        side.allocated += bytes;
        side.peak = side.peak.max(side.current);
        self.live += cut;
        self.live_peak = self.live_peak.max(self.live);
    }

    fn take(&mut self, bytes: u64, cut: u64) {
        let side = &mut self.sides[usize::from(bytes > 1 << 20)];
        side.current -= bytes;
        side.freed += bytes;
        self.live -= cut;
    }

    fn check(&self, stats: &Stats) {
        assert_eq!(stats.small.requested_bytes, self.sides[0]);
        assert_eq!(stats.large.requested_bytes, self.sides[1]);
        assert_eq!(stats.allocated_peak_bytes, self.live_peak);
    }
}

fn run(seed: u64, operations: u64, piece: u64, config: Config, failures: bool) {
    println!("seed {seed}");
    let fake = Arc::new(Fake::new(3 << 30, piece));
    fake.hold();
    let allocator = Allocator::new(Box::new(fake.clone()), config).unwrap();
    let mut draw = Random(seed * 2 + 1);
    let mut model = Model::default();
    let real: Vec<u64> = (0..u64::from(STREAMS)).map(|t| 100 + t).collect();
    let mut submitted = [0u64; STREAMS as usize];
    for &timeline in &real {
        allocator.open_stream(timeline, 0).unwrap();
    }
    let mut blocks: Vec<(Allocation, Vec<u32>, u64)> = Vec::new();
    let mut asked = Asked::default();
    for step in 0..operations {
        match draw.next(100) {
            0..=44 => {
                let stream = draw.next(u64::from(STREAMS)) as u32;
                let bytes = match draw.next(10) {
                    0..=4 => draw.next(1 << 14) + 1,
                    5..=7 => draw.next(1 << 20) + 1,
                    _ => draw.next(60 << 20) + 1,
                };
                if failures && draw.next(20) == 0 {
                    fake.fail_in(Some(draw.next(40)));
                }
                match allocator.allocate(POOL, bytes, stream) {
                    Ok(got) => {
                        assert!(got.bytes >= bytes);
                        assert_eq!(got.memory == 0, piece > 0, "a handle where nothing is mapped");
                        model.check(&fake, &got, stream, &real);
                        blocks.push((got, Vec::new(), bytes));
                        asked.give(bytes, got.bytes);
                    }
                    Err(Error::OutOfMemory(_) | Error::Quota(_)) => {}
                    Err(Error::Device(text)) if failures => assert!(text.contains("planted")),
                    Err(other) => panic!("{other}"),
                }
                fake.fail_in(None);
            }
            45..=84 if !blocks.is_empty() => {
                let (got, uses, bytes) =
                    blocks.swap_remove(draw.next(blocks.len() as u64) as usize);
                asked.take(bytes, got.bytes);
                let (_, own) = model.live.remove(&got.address).unwrap();
                let end = got.address + got.bytes;
                for stream in uses.into_iter().chain([own]) {
                    model.touched.push((got.address, end, stream, submitted[stream as usize]));
                }
                allocator.free(got.handle).unwrap();
                assert!(matches!(allocator.free(got.handle), Err(Error::BadHandle { .. })));
            }
            85..=89 if !blocks.is_empty() => {
                let stream = draw.next(u64::from(STREAMS)) as u32;
                let index = draw.next(blocks.len() as u64) as usize;
                allocator.used_on(blocks[index].0.handle, stream).unwrap();
                blocks[index].1.push(stream);
            }
            90..=94 => {
                let stream = draw.next(u64::from(STREAMS)) as u32;
                submitted[stream as usize] += 1;
                allocator.streams().advance(stream, submitted[stream as usize]).unwrap();
            }
            95..=98 => {
                let stream = draw.next(u64::from(STREAMS)) as usize;
                let now = fake.completed(real[stream]).unwrap();
                let upto = now + draw.next(submitted[stream].saturating_sub(now) + 1);
                fake.reach(real[stream], upto.max(now));
            }
            _ if step % 7 == 0 => {
                allocator.trim().unwrap();
            }
            _ => {}
        }
        if step % 512 == 0 {
            allocator.check().unwrap();
            let stats = allocator.stats(POOL).unwrap();
            let live: u64 = blocks.iter().map(|(got, _, _)| got.bytes).sum();
            asked.check(&stats);
            let counted = stats.small.allocated_bytes.current + stats.large.allocated_bytes.current;
            assert_eq!(counted, live, "step {step}");
            let figures = [stats.small.allocation, stats.large.allocation];
            let current: u64 = figures.iter().map(|f| f.current).sum();
            assert_eq!(current, blocks.len() as u64);
            assert!(figures.iter().all(|f| f.allocated - f.freed == f.current));
            let reserved = stats.small.reserved_bytes.current + stats.large.reserved_bytes.current;
            assert_eq!(reserved, fake.used());
            if !failures {
                let calls = fake.reached().calls;
                let made = calls.create + calls.release + calls.map + calls.unmap + calls.wait;
                assert_eq!(stats.driver_calls, made);
                assert_eq!(stats.open, calls, "a failed call is asked for, not made");
            }
        }
    }
    for (got, _, _) in blocks {
        allocator.free(got.handle).unwrap();
    }
    allocator.check().unwrap();
    drop(allocator);
    assert_eq!(fake.used(), 0, "all memory is given back");
}

fn operations(usual: u64) -> u64 {
    std::env::var("OPERATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

#[test]
fn mapped() {
    for seed in 0..4 {
        run(seed, operations(60_000), 2 << 20, Config::default(), false);
    }
}

#[test]
fn plain() {
    for seed in 10..14 {
        run(seed, operations(60_000), 0, Config::default(), false);
    }
}

#[test]
fn every_driver_call_fails_at_some_time() {
    for seed in 20..24 {
        for piece in [0, 2 << 20] {
            run(seed, operations(40_000), piece, Config::default(), true);
        }
    }
}

#[test]
fn with_quarantine() {
    let config = Config { quarantine_bytes: 64 << 20, ..Config::default() };
    for seed in 30..32 {
        run(seed, operations(40_000), 2 << 20, config.clone(), false);
    }
}

#[test]
fn closed_streams_make_room_for_new_ones() {
    let fake = Fake::new(1 << 30, 2 << 20);
    let allocator = Allocator::new(Box::new(fake), Config::default()).unwrap();
    for timeline in 0..3000 {
        let stream = allocator.open_stream(timeline, 0).unwrap();
        let got = allocator.allocate(POOL, 5000, stream).unwrap();
        allocator.free(got.handle).unwrap();
        allocator.close_stream(stream).unwrap();
    }
    allocator.check().unwrap();
}

#[test]
fn a_request_of_whole_pieces_leaves_nothing_over() {
    for piece in [0, 2 << 20] {
        let fake = Fake::new(1 << 30, piece);
        let allocator = Allocator::new(Box::new(fake), Config::default()).unwrap();
        let stream = allocator.open_stream(1, 0).unwrap();
        for bytes in [20 << 20, 40 << 20, 22 << 20] {
            let got = allocator.allocate(POOL, bytes, stream).unwrap();
            assert_eq!(got.bytes, bytes);
            allocator.check().unwrap();
            let stats = allocator.stats(POOL).unwrap();
            assert_eq!(stats.inactive_split_bytes, 0);
        }
    }
}

#[test]
fn every_pool_is_looked_at() {
    let fake = Arc::new(Fake::new(1 << 30, 0));
    let config = Config { quarantine_bytes: 1 << 20, ..Config::default() };
    let allocator = Allocator::new(Box::new(fake.clone()), config).unwrap();
    let stream = allocator.open_stream(1, 0).unwrap();
    for pool in 0..NAMES.len() as u32 {
        let late = allocator.allocate(pool, 900 << 10, stream).unwrap();
        allocator.free(late.handle).unwrap();
        let kept = allocator.allocate(pool, 700 << 10, stream).unwrap();
        fake.scribble(late.address, 7);
        let mut seen = Vec::new();
        allocator.each_block(|of, _, _, block| seen.push((of, block.address.get())));
        assert!(seen.contains(&(pool, kept.address)));
        allocator.trim().unwrap();
    }
    let found = allocator.findings();
    for name in NAMES {
        assert!(found.iter().any(|text| text.contains(&format!("`{name}`"))), "{name}: {found:?}");
    }
    assert_eq!(allocator.findings(), Vec::<String>::new());
}

#[test]
fn waits_retries_failures_and_sealed_calls_are_counted_once() {
    let fake = Arc::new(Fake::new(64 << 20, 2 << 20));
    fake.hold();
    let allocator = Allocator::new(Box::new(fake.clone()), Config::default()).unwrap();
    let [own, other] = [1, 2].map(|timeline| allocator.open_stream(timeline, 0).unwrap());
    let first = allocator.allocate(POOL, 40 << 20, own).unwrap();
    allocator.streams().advance(other, 5).unwrap();
    allocator.used_on(first.handle, other).unwrap();
    allocator.free(first.handle).unwrap();
    let second = allocator.allocate(POOL, 40 << 20, own).unwrap();
    let stats = allocator.stats(POOL).unwrap();
    assert_eq!((stats.waits, stats.retries, stats.out_of_memory), (1, 1, 0));
    assert!(allocator.allocate(POOL, 60 << 20, own).is_err());
    let stats = allocator.stats(POOL).unwrap();
    assert_eq!((stats.waits, stats.retries, stats.out_of_memory), (1, 2, 1));
    allocator.seal(Seal::Count);
    allocator.free(second.handle).unwrap();
    allocator.trim().unwrap();
    let (stats, calls) = (allocator.stats(POOL).unwrap(), fake.reached().calls);
    assert!(stats.sealed.release > 0 && stats.sealed.unmap > 0);
    assert_eq!(stats.sealed_calls, stats.sealed.release + stats.sealed.unmap);
    let made = calls.create + calls.release + calls.map + calls.unmap + calls.wait;
    assert_eq!(stats.driver_calls, made);
}

#[test]
fn quarantine_keeps_what_fits_on_its_shelf() {
    let config = Config { quarantine_bytes: 10 << 20, ..Config::default() };
    let allocator = Allocator::new(Box::new(Fake::new(1 << 30, 0)), config).unwrap();
    let stream = allocator.open_stream(1, 0).unwrap();
    let take = || allocator.allocate(POOL, 3 << 20, stream).unwrap();
    let freed = [take(), take(), take()];
    for block in freed {
        allocator.free(block.handle).unwrap();
    }
    let again = [take(), take(), take()].map(|block| block.address);
    assert!(freed.iter().all(|block| !again.contains(&block.address)));
    let fourth = take();
    allocator.free(fourth.handle).unwrap();
    assert_eq!(take().address, freed[0].address, "the oldest leaves a full shelf");
}

#[test]
fn ten_thousand_blocks_are_ten_thousand() {
    for piece in [2 << 20, 0] {
        let fake = Fake::new(8 << 30, piece);
        let allocator = Allocator::new(Box::new(fake), Config::default()).unwrap();
        let stream = allocator.open_stream(1, 0).unwrap();
        let live: Vec<_> =
            (0..10_000).map(|_| allocator.allocate(POOL, 600 << 10, stream).unwrap()).collect();
        let addresses: BTreeSet<_> = live.iter().map(|got| got.address).collect();
        assert_eq!(addresses.len(), live.len());
        for got in &live {
            assert_eq!(allocator.describe(got.handle).unwrap(), *got);
        }
        let last = live.iter().map(|got| got.handle as u32).max().unwrap();
        for got in live {
            allocator.free(got.handle).unwrap();
        }
        allocator.check().unwrap();
        // The slab holds a whole number of chunks; what lies after them is nobody.
        for beyond in [last + 4096, last + 8192, u32::MAX - 1] {
            let error = allocator.free(u64::from(beyond)).unwrap_err().to_string();
            assert!(error.contains("no block has this number") || error.contains("not of a live"));
        }
    }
}

#[test]
fn handles_and_streams_that_are_none_are_told() {
    let allocator = Allocator::new(Box::new(Fake::new(1 << 30, 0)), Config::default()).unwrap();
    let stream = allocator.open_stream(1, 0).unwrap();
    let got = allocator.allocate(POOL, 3 << 20, stream).unwrap();
    for other in [stream + 1, 1023, 1024, u32::MAX] {
        let error = allocator.allocate(POOL, 5, other).unwrap_err().to_string();
        assert!(error.contains("is not open"), "{error}");
        assert!(allocator.used_on(got.handle, other).is_err());
    }
    allocator.streams().advance(stream, 3).unwrap();
    allocator.streams().advance(stream, 3).unwrap();
    assert!(allocator.streams().advance(stream, 2).is_err());
    allocator.free(got.handle).unwrap();
    let twice = allocator.free(got.handle).unwrap_err().to_string();
    assert!(twice.contains("it was freed before"), "{twice}");
    let foreign = allocator.free(got.handle + (7 << 32)).unwrap_err().to_string();
    assert!(foreign.contains("not of a live block"), "{foreign}");
}
