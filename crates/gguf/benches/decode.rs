//! How fast blocks become values, and values blocks, on one core.
//!
//! `cargo bench -p rullama-gguf --bench decode` measures every format on a tensor larger than the caches and
//! ends with a table that sets each beside a plain copy of the decoded values: the copy moves as many bytes
//! as any decoder has to write. An argument selects formats by name, as in `-- decode/Q4_K`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, SamplingMode, Throughput};
use rullama_gguf::format::Format;

/// 64 MiB of f32.
const VALUES: usize = 1 << 24;
/// Encoders compute more than they move, and stay independent of the size.
const VALUES_TO_ENCODE: usize = 1 << 20;

/// The shortest time of one run, by name.
type Shortest = RefCell<BTreeMap<String, Duration>>;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let [decoded, encoded] = [Shortest::default(), Shortest::default()];
    decode(&mut criterion, &decoded);
    encode(&mut criterion, &encoded);
    criterion.final_summary();
    print_table(&decoded.borrow(), &encoded.borrow());
}

fn decode(criterion: &mut Criterion, shortest: &Shortest) {
    let mut group = group(criterion, "decode", VALUES);
    // Written before the first measurement, so that no page is touched for the first time inside one.
    let mut out = vec![1.0f32; VALUES];
    let source = vec![2.0f32; VALUES];
    measure(&mut group, shortest, "copy", || out.copy_from_slice(black_box(&source)));
    for &format in Format::ALL {
        let blocks = noise(VALUES / format.block_len() * format.block_bytes());
        measure(&mut group, shortest, format.name(), || {
            format.decode(black_box(&blocks), &mut out).expect("the sizes fit");
        });
    }
    // Once more at the end: the faster of the two copies is the measure.
    measure(&mut group, shortest, "copy", || out.copy_from_slice(black_box(&source)));
    group.finish();
}

fn encode(criterion: &mut Criterion, shortest: &Shortest) {
    let mut group = group(criterion, "encode", VALUES_TO_ENCODE);
    let values = normal(VALUES_TO_ENCODE);
    for &format in Format::ALL.iter().filter(|format| format.can_encode()) {
        let mut out = vec![1; VALUES_TO_ENCODE / format.block_len() * format.block_bytes()];
        measure(&mut group, shortest, format.name(), || {
            format.encode(black_box(&values), &mut out).expect("the sizes fit");
        });
    }
    group.finish();
}

fn group<'a>(criterion: &'a mut Criterion, name: &str, values: usize) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group
        .sampling_mode(SamplingMode::Flat)
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800))
        .throughput(Throughput::Elements(values as u64));
    group
}

fn measure(group: &mut BenchmarkGroup<'_, WallTime>, shortest: &Shortest, name: &str, mut run: impl FnMut()) {
    // Criterion wants every name once; the second copy gets a name of its own.
    let again = shortest.borrow().contains_key(name);
    let id = BenchmarkId::from_parameter(if again { format!("{name}, again") } else { name.to_owned() });
    group.bench_function(id, |bencher| {
        bencher.iter_custom(|runs| {
            let mut total = Duration::ZERO;
            for _ in 0..runs {
                let start = Instant::now();
                run();
                let time = start.elapsed();
                total += time;
                let mut shortest = shortest.borrow_mut();
                let known = shortest.entry(name.to_owned()).or_insert(time);
                *known = time.min(*known);
            }
            total
        });
    });
}

#[expect(clippy::print_stdout, reason = "the table is what the command is for")]
fn print_table(decoded: &BTreeMap<String, Duration>, encoded: &BTreeMap<String, Duration>) {
    let speed = |values: usize, time: &Duration| values as f64 / time.as_secs_f64() / 1e6;
    let copy = decoded.get("copy").map(|time| speed(VALUES, time));
    println!("\n{:<8} {:>16} {:>8} {:>16}", "format", "decoded M/s", "of copy", "encoded M/s");
    if let Some(copy) = copy {
        println!("{:<8} {copy:>16.0}", "copy");
    }
    for format in Format::ALL {
        let decoded = decoded.get(format.name()).map(|time| speed(VALUES, time));
        let encoded = encoded.get(format.name()).map(|time| speed(VALUES_TO_ENCODE, time));
        if decoded.is_none() && encoded.is_none() {
            continue;
        }
        let number =
            |value: Option<f64>, digits: usize| value.map_or(String::new(), |v| format!("{v:.digits$}"));
        let ratio = decoded.zip(copy).map(|(decoded, copy)| decoded / copy);
        println!("{format:<8} {:>16} {:>8} {:>16}", number(decoded, 0), number(ratio, 2), number(encoded, 0));
    }
}

/// Bytes without a pattern, so that table look-ups and branches meet every case.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Values that are nearly normally distributed: sums of twelve uniform ones, as weights are.
fn normal(len: usize) -> Vec<f32> {
    let uniform = |bytes: &[u8]| bytes.iter().map(|&byte| f32::from(byte) / 255.0).sum::<f32>();
    noise(12 * len).chunks_exact(12).map(|bytes| 0.02 * (uniform(bytes) - 6.0)).collect()
}
