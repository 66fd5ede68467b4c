//! The WGSL fragment of each format reads what `pack` writes.
//!
//! A small kernel decodes whole rows through the two functions of a fragment. It is checked by naga, and run
//! on whatever adapter the machine has; a machine without one fails.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use naga::valid::{Capabilities, ValidationFlags, Validator};
use rullama_gguf::Format;
use rullama_gpu::weights::pack::{PACKED_FORMATS, Packing};
use safetensors::SafeTensors;
use wgpu::util::DeviceExt as _;

/// What a kernel body gives to a format fragment, and an entry point that decodes: one lane for each group.
const BODY: &str = "
struct Params { plane_at: vec4<u32>, plane_words: vec4<u32>, width: u32, rows: u32 }

@group(0) @binding(0) var<storage, read> weight: array<u32>;
@group(0) @binding(1) var<storage, read_write> values: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

fn plane0(row: u32, word: u32) -> u32 { return weight[params.plane_at.x + row * params.plane_words.x + word]; }
fn plane1(row: u32, word: u32) -> u32 { return weight[params.plane_at.y + row * params.plane_words.y + word]; }
fn plane2(row: u32, word: u32) -> u32 { return weight[params.plane_at.z + row * params.plane_words.z + word]; }

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
        for (var i = 0u; i < 4u; i++) {
            let at = group * GROUP + 4u * word + i;
            if at < params.width { values[row * params.width + at] = four[i]; }
        }
    }
}
";

/// The fragment of a format under the decoding kernel.
fn kernel(format: Format) -> String {
    let name = format.name().to_lowercase();
    let path = format!("{}/wgsl/format/{name}.wgsl", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}")) + BODY
}

#[test]
fn fragments_are_valid() {
    for format in PACKED_FORMATS {
        let source = kernel(format);
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
        let packing = Packing::new(format, 256).unwrap();
        let line = format!("const GROUP: u32 = {}u;", packing.group_len());
        assert!(kernel(format).contains(&line), "{format}: expected `{line}`");
    }
}

/// No fragment is left without a format.
#[test]
fn fragments_are_all_used() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/wgsl/format");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let format: Format = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
        assert!(PACKED_FORMATS.contains(&format), "{format}");
    }
}

/// The GPU decodes every format to the values that `unpack_row` gives, in rows of several lengths.
#[test]
fn gpu_decodes_as_the_cpu() {
    let (device, queue) = device();
    for format in PACKED_FORMATS {
        let blocks = blocks(format);
        let lengths = if format.is_quantised() { [1, 3, 24] } else { [32, 100, 600] };
        for length in lengths {
            let packing = Packing::new(format, (length * format.block_len()) as u32).unwrap();
            let blocks = &blocks[..blocks.len() / packing.bytes_per_row() * packing.bytes_per_row()];
            let (words, plane_at, expected) = packed(&packing, blocks);
            let found = decode_on(&device, &queue, &packing, &words, plane_at, expected.len());
            compare(&packing, &found, &expected);
        }
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
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf/blocks.safetensors");
    let file = std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let file = SafeTensors::deserialize(&file).unwrap();
    let wanted = format!("{format}.blocks");
    let name = file.names().into_iter().find(|name| name.eq_ignore_ascii_case(&wanted)).unwrap();
    file.tensor(name).unwrap().data().to_vec()
}

/// The planes one after another, where each starts, and the values that the CPU reads from them.
fn packed(packing: &Packing, blocks: &[u8]) -> (Vec<u32>, [u32; 3], Vec<f32>) {
    let rows = blocks.len() / packing.bytes_per_row();
    let mut planes = packing.plane_words.map(|words| vec![0; rows * words as usize]);
    packing.pack_rows(blocks, planes.each_mut().map(Vec::as_mut_slice));

    let mut expected = vec![0.0; rows * packing.width as usize];
    for (row, out) in expected.chunks_mut(packing.width as usize).enumerate() {
        let plane = |p: usize| &planes[p][row * packing.plane_words[p] as usize..];
        packing.unpack_row([plane(0), plane(1), plane(2)], out);
    }
    let [first, second, _] = planes.each_ref().map(|plane| plane.len() as u32);
    (planes.concat(), [0, first, first + second], expected)
}

/// Within 1e-6 of the largest magnitude of a group: a GPU may fuse the product and the sum, and the rounding
/// it saves is that of the product, however small the sum. It may also flush the subnormal scales of MXFP4.
fn compare(packing: &Packing, found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    let (width, group) = (packing.width as usize, packing.group_len() as usize);
    for (row, (found, expected)) in found.chunks(width).zip(expected.chunks(width)).enumerate() {
        for (at, (found, expected)) in found.chunks(group).zip(expected.chunks(group)).enumerate() {
            let largest = expected.iter().fold(0f32, |largest, value| largest.max(value.abs()));
            assert!(largest.is_finite(), "{}: group {at} of row {row} is not finite", packing.format);
            let allowed = (largest * 1e-6).max(16.0 * f32::MIN_POSITIVE);
            for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
                assert!(
                    (found - expected).abs() <= allowed,
                    "{}, width {width}: value {} of row {row} is {found:e} on the GPU; expected {expected:e}",
                    packing.format,
                    at * group + i,
                );
            }
        }
    }
}

fn device() -> (wgpu::Device, wgpu::Queue) {
    pollster::block_on(async {
        let adapter = wgpu::Instance::default()
            .request_adapter(&wgpu::RequestAdapterOptions::default())
            .await
            .expect("this test needs an adapter; a software one such as lavapipe will do");
        adapter.request_device(&wgpu::DeviceDescriptor::default()).await.unwrap()
    })
}

/// Runs the decoding kernel over packed rows.
fn decode_on(
    device: &wgpu::Device,
    queue: &wgpu::Queue,
    packing: &Packing,
    words: &[u32],
    plane_at: [u32; 3],
    values: usize,
) -> Vec<f32> {
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some(packing.format.name()),
        source: wgpu::ShaderSource::Wgsl(kernel(packing.format).into()),
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(packing.format.name()),
        layout: None,
        module: &module,
        entry_point: None,
        compilation_options: Default::default(),
        cache: None,
    });

    let rows = values as u32 / packing.width;
    let ([a, b, c], [x, y, z]) = (plane_at, packing.plane_words);
    let params = [a, b, c, 0, x, y, z, 0, packing.width, rows, 0, 0];
    let bytes = 4 * values as u64;
    let filled = |contents: &[u32], usage| {
        let contents = bytemuck::cast_slice(contents);
        device.create_buffer_init(&wgpu::util::BufferInitDescriptor { label: None, contents, usage })
    };
    let empty = |usage| {
        let descriptor =
            wgpu::BufferDescriptor { label: None, size: bytes, usage, mapped_at_creation: false };
        device.create_buffer(&descriptor)
    };
    let weight = filled(words, wgpu::BufferUsages::STORAGE);
    let params = filled(&params, wgpu::BufferUsages::UNIFORM);
    let decoded = empty(wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
    let readback = empty(wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ);
    fn entry(binding: u32, buffer: &wgpu::Buffer) -> wgpu::BindGroupEntry<'_> {
        wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() }
    }
    let bind_group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[entry(0, &weight), entry(1, &decoded), entry(2, &params)],
    });

    let mut encoder = device.create_command_encoder(&Default::default());
    let mut pass = encoder.begin_compute_pass(&Default::default());
    pass.set_pipeline(&pipeline);
    pass.set_bind_group(0, &bind_group, &[]);
    let groups = rows * packing.width.div_ceil(packing.group_len());
    pass.dispatch_workgroups(groups.div_ceil(64), 1, 1);
    drop(pass);
    encoder.copy_buffer_to_buffer(&decoded, 0, &readback, 0, bytes);
    queue.submit([encoder.finish()]);

    readback.slice(..).map_async(wgpu::MapMode::Read, |result| result.unwrap());
    device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    let view = readback.slice(..).get_mapped_range().unwrap();
    bytemuck::cast_slice(&view).to_vec()
}
