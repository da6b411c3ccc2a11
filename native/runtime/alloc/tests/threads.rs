//! Threads that allocate, pass blocks on, use them on each other's streams and free
//! what they did not make, while streams move and figures are read. What must hold
//! at the end is checked; what is wrong between threads is a sanitizer's to find
//! (make soak runs this under ThreadSanitizer where the compiler has it).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc, Barrier, Mutex};

use bedplate_alloc::allocator::Allocator;
use bedplate_alloc::conf::Config;
use bedplate_alloc::error::Error;
use bedplate_alloc::fake::Fake;
use bedplate_alloc::lock::locked;

const THREADS: u64 = 4;
const POOL: u32 = 1;

fn sizes(step: u64) -> u64 {
    [300, 5_000, 5_000, 70_000, 1 << 20, 3 << 20][(step % 6) as usize]
}

fn run(piece: u64) {
    let steps = std::env::var("OPERATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000);
    let steps: u64 = steps / THREADS;
    let fake = Arc::new(Fake::new(4 << 30, piece));
    fake.hold();
    let allocator = Arc::new(Allocator::new(Box::new(fake.clone()), Config::default()).unwrap());
    let (give, take) = mpsc::channel::<u64>();
    let take = Arc::new(Mutex::new(take));
    let start = Arc::new(Barrier::new(THREADS as usize + 1));
    let end = Arc::new(Barrier::new(THREADS as usize));
    let done = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..THREADS)
        .map(|number| {
            let (allocator, fake) = (allocator.clone(), fake.clone());
            let (give, take, start, end) = (give.clone(), take.clone(), start.clone(), end.clone());
            std::thread::spawn(move || {
                let stream = allocator.open_stream(number, 0).unwrap();
                start.wait();
                let mut kept = Vec::new();
                for step in 1..=steps {
                    match allocator.allocate(POOL, sizes(step * (number + 3)), stream) {
                        Ok(got) => kept.push(got.handle),
                        Err(Error::OutOfMemory(_)) => {}
                        Err(other) => panic!("{other}"),
                    }
                    if step % 3 == 0 {
                        allocator.streams().advance(stream, step).unwrap();
                    }
                    if step % 7 == 0 {
                        fake.reach(number, step - step % 3);
                    }
                    match (step % 5, kept.pop()) {
                        (0, Some(block)) => give.send(block).unwrap(),
                        (1, Some(block)) => {
                            allocator.used_on(block, (stream + 1) % THREADS as u32).unwrap();
                            allocator.free(block).unwrap();
                        }
                        (2, Some(block)) => kept.push(block),
                        (_, Some(block)) => allocator.free(block).unwrap(),
                        (_, None) => {}
                    }
                    let passed = locked(&take).try_recv();
                    if let Ok(block) = passed {
                        allocator.free(block).unwrap();
                        assert!(matches!(allocator.free(block), Err(Error::BadHandle { .. })));
                    }
                    if kept.len() > 40 {
                        for block in kept.drain(..) {
                            allocator.free(block).unwrap();
                        }
                    }
                }
                for block in kept {
                    allocator.free(block).unwrap();
                }
                // Nobody names a stream that is closed.
                end.wait();
                fake.reach(number, u64::MAX >> 1);
                allocator.close_stream(stream).unwrap();
            })
        })
        .collect();
    let watcher = {
        let (allocator, done) = (allocator.clone(), done.clone());
        std::thread::spawn(move || {
            while !done.load(Ordering::Acquire) {
                let stats = allocator.stats(POOL).unwrap();
                assert!(stats.large.allocated_bytes.current <= stats.reserved_peak_bytes);
                allocator.trim().unwrap();
            }
        })
    };
    start.wait();
    for worker in workers {
        worker.join().unwrap();
    }
    done.store(true, Ordering::Release);
    watcher.join().unwrap();
    drop(give);
    for block in locked(&take).iter() {
        allocator.free(block).unwrap();
    }
    allocator.trim().unwrap();
    allocator.check().unwrap();
    let stats = allocator.stats(POOL).unwrap();
    assert_eq!(stats.small.requested_bytes.current + stats.large.requested_bytes.current, 0);
    assert_eq!(stats.small.requested_bytes.allocated, stats.small.requested_bytes.freed);
    assert_eq!(stats.small.allocation.current + stats.large.allocation.current, 0);
    assert!(stats.allocated_peak_bytes > 0 && stats.pending_free_bytes == 0);
    assert_eq!(fake.used(), 0, "trim gives back what nobody has");
}

fn main() {
    run(2 << 20);
    run(0);
    println!("no rule broken by {THREADS} threads");
}
