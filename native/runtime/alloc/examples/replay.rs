//! Replays the traces given as `.bpt` bodies: a table for tuning.
use bedplate_alloc::policy::{by_name, NAMES};
use bedplate_alloc::replay::{replay, Record};

fn main() {
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path).unwrap();
        let n = bytes.len() / 40;
        let mut trace = vec![Record::default(); n];
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), trace.as_mut_ptr().cast(), n * 40) };
        println!("{path}");
        for name in NAMES
            .iter()
            .filter(|n| std::env::var("P").map_or(true, |p| p.split(",").any(|q| q == **n)))
        {
            let t = std::time::Instant::now();
            let mut policy = by_name(name, 140 << 30, &trace).unwrap();
            let out = replay(&trace, &mut *policy, |_, _, _| {}).unwrap();
            println!("  {name:18} live {:7.3} GiB  reserved {:7.3}  ratio {:.4}  oom {} calls {:7} {:6.0} ms",
                out.live_peak as f64 / (1u64 << 30) as f64, out.reserved_peak as f64 / (1u64 << 30) as f64,
                out.reserved_peak as f64 / out.live_peak as f64, out.out_of_memory, out.driver_calls, t.elapsed().as_secs_f64()*1e3);
        }
    }
}
