//! The WGSL fragment of each format reads what `pack` writes.
//!
//! Small kernels decode whole rows, group by group and chunk by chunk. They are checked by naga, and run on
//! whatever adapter the machine has; a machine without one fails.

use crate::common;
use naga::valid::{Capabilities, ValidationFlags, Validator};
use rullama_gguf::Format;
use rullama_gpu::weights::pack::{PACKED_FORMATS, Packing};
use safetensors::SafeTensors;
use wgpu::util::DeviceExt as _;

/// What a kernel body gives to a format fragment.
const BINDINGS: &str = "
struct Params { plane_at: vec4<u32>, plane_words: vec4<u32>, width: u32, rows: u32 }

@group(0) @binding(0) var<storage, read> weight: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> values: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

fn write(row: u32, at: u32, four: vec4<f32>) {
    for (var i = 0u; i < 4u; i++) {
        if at + i < params.width { values[row * params.width + at + i] = four[i]; }
    }
}
";

/// Decodes with one lane for each group. What breaks a promise of the fragment comes out far too large.
const GROUPS: &str = "
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let groups = (params.width + GROUP - 1u) / GROUP;
    let row = id.x / groups;
    let group = id.x % groups;
    if row >= params.rows { return; }
    let scale = group_scale(row, group);
    for (var word = 0u; word < GROUP / 4u; word++) {
        var four = scale.x * group_quants(row, group, word);
        if HAS_OFFSET { four += vec4<f32>(scale.y); } else if scale.y != 0.0 { four = vec4<f32>(1e30); }
        write(row, group * GROUP + 4u * word, four);
    }
}
";

/// Decodes with one lane for each chunk, likewise.
const CHUNKS: &str = "
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let chunks = (params.width + 31u) / 32u;
    let row = id.x / chunks;
    let chunk = id.x % chunks;
    if row >= params.rows { return; }
    var scales = chunk_scales(row, chunk);
    if !HAS_OFFSET && any(scales.yw != vec2<f32>(0.0)) { scales = vec4<f32>(1e30); }
    if GROUP == 32u && any(scales.xy != scales.zw) { scales = vec4<f32>(1e30); }
    var quants = chunk_quants(row, chunk);
    for (var word = 0u; word < 8u; word++) {
        let scale = select(scales.xy, scales.zw, word >= 4u);
        write(row, 32u * chunk + 4u * word, scale.x * quants[word] + vec4<f32>(scale.y));
    }
}
";

/// The fragment of a format under a kernel that decodes.
fn kernel(format: Format, decode: &str) -> String {
    let read = |file: &str| {
        let path = common::source("wgsl").join(file);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let fragment = read(&format!("format/{}.wgsl", format.name().to_lowercase()));
    [&fragment, &read("shared/planes.wgsl"), BINDINGS, decode].concat()
}

#[test]
fn fragments_are_valid() {
    for (format, decode) in PACKED_FORMATS.into_iter().flat_map(|f| [(f, GROUPS), (f, CHUNKS)]) {
        let source = kernel(format, decode);
        let module = naga::front::wgsl::parse_str(&source)
            .unwrap_or_else(|error| panic!("{format}: {}", error.emit_to_string(&source)));
        // Core WGSL only, of which naga holds `unpack2x16float` to be a capability.
        Validator::new(ValidationFlags::all(), Capabilities::SHADER_FLOAT16_IN_FLOAT32)
            .validate(&module)
            .unwrap_or_else(|error| panic!("{format}: {}", error.emit_to_string(&source)));
    }
}

/// The group of a fragment is the group of its packing.
#[test]
fn groups_agree() {
    for format in PACKED_FORMATS {
        let packing = packing(format, 256);
        let line = format!("const GROUP: u32 = {}u;", packing.group_len());
        assert!(kernel(format, GROUPS).contains(&line), "{format}: expected `{line}`");
    }
}

/// No fragment is left without a format.
#[test]
fn fragments_are_all_used() {
    let folder = common::source("wgsl/format");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let format: Format = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
        assert!(PACKED_FORMATS.contains(&format), "{format}");
    }
}

/// The GPU decodes every format to the values that `unpack_row` gives, in rows of several lengths.
#[test]
fn gpu_decodes_groups_as_the_cpu() {
    let gpu = Gpu::open();
    for rows in PACKED_FORMATS.into_iter().flat_map(Rows::of_several_lengths) {
        rows.compare(&gpu.decode(&rows, GROUPS)).unwrap();
    }
}

#[test]
fn gpu_decodes_chunks_as_the_cpu() {
    let gpu = Gpu::open();
    for rows in PACKED_FORMATS.into_iter().flat_map(Rows::of_several_lengths) {
        rows.compare(&gpu.decode(&rows, CHUNKS)).unwrap();
    }
}

/// The values compared tell any two places of a chunk apart, so that no wrong order can pass.
#[test]
fn places_differ() {
    for rows in PACKED_FORMATS.into_iter().flat_map(Rows::of_several_lengths) {
        for (i, j) in (0..32).flat_map(|j| (0..j).map(move |i| (i, j))) {
            let mut swapped = rows.expected.clone();
            for row in swapped.chunks_mut(rows.packing.width as usize) {
                row.chunks_exact_mut(32).for_each(|chunk| chunk.swap(i, j));
            }
            assert!(rows.compare(&swapped).is_err(), "{}: values {i} and {j}", rows.packing.format);
        }
    }
}

/// The scales of a chunk's halves differ where a group is half a chunk, so that the wrong one cannot pass.
#[test]
fn halves_differ() {
    let gpu = Gpu::open();
    let formats = PACKED_FORMATS.into_iter().filter(|&format| packing(format, 256).group_len() == 16);
    for rows in formats.flat_map(Rows::of_several_lengths) {
        for twisted in ["scales.xyxy", "scales.zwxy"] {
            let decode = CHUNKS.replace("var quants", &format!("scales = {twisted}; var quants"));
            let found = gpu.decode(&rows, &decode);
            assert!(rows.compare(&found).is_err(), "{}: {twisted}", rows.packing.format);
        }
    }
}

fn packing(format: Format, width: u32) -> Packing {
    Packing::new(format, width).unwrap()
}

/// Packed rows and the values that the CPU reads from them.
struct Rows {
    packing: Packing,
    count: usize,
    /// The planes one after another.
    words: Vec<u32>,
    expected: Vec<f32>,
}

impl Rows {
    /// An odd number of rows of each length, so that planes end within a quad.
    fn of_several_lengths(format: Format) -> Vec<Self> {
        let blocks = blocks(format);
        let lengths = if format.is_quantised() { [1, 3, 24] } else { [32, 100, 600] };
        lengths
            .into_iter()
            .map(|length| {
                let packing = packing(format, (length * format.block_len()) as u32);
                let count = (blocks.len() / packing.bytes_per_row() - 1) | 1;
                Self::new(packing, &blocks[..count * packing.bytes_per_row()])
            })
            .collect()
    }

    fn new(packing: Packing, blocks: &[u8]) -> Self {
        let count = blocks.len() / packing.bytes_per_row();
        let mut planes = packing.plane_words.map(|words| vec![0; count * words as usize]);
        packing.pack_rows(blocks, planes.each_mut().map(Vec::as_mut_slice));

        let mut expected = vec![0.0; count * packing.width as usize];
        for (row, out) in expected.chunks_mut(packing.width as usize).enumerate() {
            let plane = |p: usize| &planes[p][row * packing.plane_words[p] as usize..];
            packing.unpack_row([plane(0), plane(1), plane(2)], out);
        }
        let [.., end] = packing.plane_starts(count as u64);
        let mut words = vec![0; end as usize];
        for (plane, at) in planes.iter().zip(packing.plane_starts(count as u64)) {
            words[at as usize..][..plane.len()].copy_from_slice(plane);
        }
        Self { packing, count, words, expected }
    }

    /// Within 1e-6 of the largest magnitude of a group: a GPU may fuse the product and the sum, and the rounding
    /// it saves is that of the product, however small the sum. It may also flush the subnormal scales of MXFP4.
    fn compare(&self, found: &[f32]) -> Result<(), String> {
        let (expected, format) = (&self.expected, self.packing.format);
        assert_eq!(found.len(), expected.len());
        let (width, group) = (self.packing.width as usize, self.packing.group_len() as usize);
        for (row, (found, expected)) in found.chunks(width).zip(expected.chunks(width)).enumerate() {
            for (at, (found, expected)) in found.chunks(group).zip(expected.chunks(group)).enumerate() {
                let largest = expected.iter().fold(0f32, |largest, value| largest.max(value.abs()));
                assert!(largest.is_finite(), "{format}: group {at} of row {row} is not finite");
                let allowed = (largest * 1e-6).max(16.0 * f32::MIN_POSITIVE);
                let differs =
                    |(found, expected): (&f32, &f32)| (found - expected).abs() > allowed || found.is_nan();
                if let Some(i) = found.iter().zip(expected).position(differs) {
                    let place = at * group + i;
                    let (found, expected) = (found[i], expected[i]);
                    return Err(format!(
                        "{format}, width {width}: value {place} of row {row} is {found:e} on the GPU; expected {expected:e}"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The blocks of the fixture; for plain floats, numbers of the size that weights have.
fn blocks(format: Format) -> Vec<u8> {
    if !format.is_quantised() {
        let values: Vec<f32> =
            (0..600u32).map(|i| (i.wrapping_mul(2_654_435_761) as i32) as f32 * 1e-9).collect();
        let mut blocks = vec![0; values.len() * format.block_bytes()];
        format.encode(&values, &mut blocks).unwrap();
        return blocks;
    }
    let path = common::testdata("gguf/blocks.safetensors");
    let file = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file = SafeTensors::deserialize(&file).unwrap();
    let wanted = format!("{format}.blocks");
    let name = file.names().into_iter().find(|name| name.eq_ignore_ascii_case(&wanted)).unwrap();
    file.tensor(name).unwrap().data().to_vec()
}

struct Gpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
}

impl Gpu {
    fn open() -> Self {
        pollster::block_on(async {
            let adapter = wgpu::Instance::default()
                .request_adapter(&wgpu::RequestAdapterOptions::default())
                .await
                .expect("this test needs an adapter; a software one such as lavapipe will do");
            let (device, queue) = adapter.request_device(&wgpu::DeviceDescriptor::default()).await.unwrap();
            Self { device, queue }
        })
    }

    /// The values of packed rows, by a kernel that decodes.
    fn decode(&self, rows: &Rows, decode: &str) -> Vec<f32> {
        let (device, packing) = (&self.device, &rows.packing);
        let label = Some(packing.format.name());
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label,
            source: wgpu::ShaderSource::Wgsl(kernel(packing.format, decode).into()),
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label,
            layout: None,
            module: &module,
            entry_point: None,
            compilation_options: Default::default(),
            cache: None,
        });

        let [a, b, c, _] = packing.plane_starts(rows.count as u64).map(|at| at as u32);
        let [x, y, z] = packing.plane_words;
        let params = [a, b, c, 0, x, y, z, 0, packing.width, rows.count as u32, 0, 0];
        let bytes = 4 * rows.expected.len() as u64;
        let filled = |contents: &[u32], usage| {
            let contents = bytemuck::cast_slice(contents);
            device.create_buffer_init(&wgpu::util::BufferInitDescriptor { label, contents, usage })
        };
        let empty = |usage| {
            let descriptor = wgpu::BufferDescriptor { label, size: bytes, usage, mapped_at_creation: false };
            device.create_buffer(&descriptor)
        };
        let weight = filled(&rows.words, wgpu::BufferUsages::STORAGE);
        let params = filled(&params, wgpu::BufferUsages::UNIFORM);
        let decoded = empty(wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
        let readback = empty(wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ);
        fn entry(binding: u32, buffer: &wgpu::Buffer) -> wgpu::BindGroupEntry<'_> {
            wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() }
        }
        let bind_group = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &[entry(0, &weight), entry(1, &decoded), entry(2, &params)],
        });

        let mut encoder = device.create_command_encoder(&Default::default());
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &bind_group, &[]);
        // A lane for each group; chunks need no more, and lanes without work return.
        let lanes = rows.count as u32 * packing.width.div_ceil(packing.group_len());
        pass.dispatch_workgroups(lanes.div_ceil(64), 1, 1);
        drop(pass);
        encoder.copy_buffer_to_buffer(&decoded, 0, &readback, 0, bytes);
        self.queue.submit([encoder.finish()]);

        readback.slice(..).map_async(wgpu::MapMode::Read, |result| result.unwrap());
        device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
        let view = readback.slice(..).get_mapped_range().unwrap();
        bytemuck::cast_slice(&view).to_vec()
    }
}
