//! How fast a real header is read: 262,144 tokens and 514,906 merges, 15.8 MB.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rullama_gguf::{ByteSource, Header, MemorySource};

fn header(criterion: &mut Criterion) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/tokenizer/gemma4-vocab.gguf");
    let source = MemorySource::new(std::fs::read(path).expect("the vocabulary is part of the test data"));
    let mut group = criterion.benchmark_group("header");
    group.throughput(Throughput::Bytes(source.len())).sample_size(20);
    group.bench_function("read", |bencher| {
        bencher.iter(|| pollster::block_on(Header::read(&source)).expect("it is a GGUF file"));
    });
    group.finish();
}

criterion_group!(benches, header);
criterion_main!(benches);
