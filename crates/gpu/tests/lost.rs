//! A GPU that goes away is an error of whatever is asked of it next, and never a panic.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::rc::Rc;

use rullama_gemma::{Config, Outputs, text};
use rullama_gguf::{MemorySource, Model};
use rullama_gpu::{
    Fragment, Gpu, GpuError, GpuModel, GpuOptions, GpuState, Kernel, KernelSpec, ModelOptions, Sampling,
    lab::Lab,
};

const PROMPT: [u32; 4] = [2, 610, 483, 716];

fn open() -> Gpu {
    pollster::block_on(Gpu::open(&GpuOptions::default().without_self_test()))
        .expect("these tests need an adapter; a software one such as lavapipe will do")
}

fn file() -> Rc<Model> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/gguf/micro-e2b-F16.gguf");
    let source = MemorySource::new(std::fs::read(path).unwrap());
    Rc::new(pollster::block_on(Model::open(Box::new(source))).unwrap())
}

fn load(gpu: &Gpu, model: &Rc<Model>) -> Result<Rc<GpuModel>, GpuError> {
    let graph = text(model, &Config::read(model).unwrap(), Outputs::Last).unwrap();
    let options = ModelOptions::default().context(64);
    pollster::block_on(GpuModel::load(gpu.clone(), model, graph, options, &mut |_, _| {})).map(Rc::new)
}

fn greedy() -> Sampling {
    Sampling {
        temperature: 0.0,
        bias: Vec::new(),
        repeat_last_n: 0,
        repeat_penalty: 1.0,
        frequency_penalty: 0.0,
        presence_penalty: 0.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
        random: [1, 2, 3, 4],
    }
}

fn step(state: &mut GpuState) -> Result<Vec<f32>, GpuError> {
    pollster::block_on(state.step(&PROMPT))
}

fn begin(state: &mut GpuState) -> Result<(), GpuError> {
    pollster::block_on(state.begin(&PROMPT, &greedy(), &PROMPT, 40))
}

fn is_lost<T>(result: Result<T, GpuError>) -> bool {
    let error = result.err().unwrap();
    assert!(matches!(error, GpuError::Lost { .. }), "{error:?}");
    error.code() == "device.lost"
}

#[test]
fn whatever_is_asked_of_a_lost_gpu_says_so() {
    let (gpu, model) = (open(), file());
    let loaded = load(&gpu, &model).unwrap();
    let [mut used, mut replying, mut unused] = [(); 3].map(|()| loaded.state().unwrap());
    let before = step(&mut used).unwrap();
    begin(&mut replying).unwrap();
    pollster::block_on(replying.next_token()).unwrap();

    gpu.destroy();
    assert!(is_lost(step(&mut used)));
    assert!(gpu.is_lost());
    // Steps that were under way may still have been finished, but no others.
    let tokens = (0..10).map(|_| pollster::block_on(replying.next_token()));
    let lost = tokens.filter_map(Result::err).next().unwrap();
    assert!(matches!(lost, GpuError::Lost { .. }), "{lost:?}");
    assert!(is_lost(begin(&mut replying)));
    assert!(is_lost(step(&mut unused)));
    assert!(is_lost(begin(&mut unused)));
    assert!(is_lost(loaded.state().and_then(|mut state| step(&mut state))));
    assert!(is_lost(load(&gpu, &model)));
    assert!(is_lost(pollster::block_on(rullama_gpu::self_test(&gpu))));

    let again = Rc::new(pollster::block_on(loaded.reload(&mut |_, _| {})).unwrap());
    assert_eq!(step(&mut again.state().unwrap()).unwrap(), before);
    assert!(!again.gpu().is_lost());
}

/// Lost before anything else is asked of it.
#[test]
fn a_gpu_can_be_lost_before_a_model_is_loaded() {
    let gpu = open();
    gpu.destroy();
    assert!(is_lost(load(&gpu, &file())));
    let gpu = open();
    gpu.destroy();
    assert!(is_lost(pollster::block_on(rullama_gpu::self_test(&gpu))));
}

/// A dispatch of more workgroups than there may be.
#[test]
fn a_refused_command_is_an_error_and_no_more() {
    let gpu = open();
    let lab = Lab::new(&gpu);
    let (a, b, y) = (lab.floats(&[1.0, 2.0]), lab.floats(&[3.0, 4.0]), lab.floats(&[0.0; 2]));
    let spec =
        KernelSpec::new(Kernel::Elementwise).with(Fragment::Gelu).with(Fragment::Reduce).with(Fragment::Add);
    let spec = spec.constant("LANES", 64);
    let run = |workgroups: u32| {
        let kernel = lab.prepare(&spec, &[2, 0, 1], &[("a", &a), ("b", &b), ("y", &y)], [workgroups, 1, 1]);
        lab.run(&[kernel], [1, 0]);
        pollster::block_on(lab.read(&y))
    };
    let error = run(1 << 20).unwrap_err();
    assert!(matches!(error, GpuError::Refused { .. }), "{error:?}");
    assert_eq!(error.code(), "device.refused");
    assert_eq!(run(1).unwrap(), [4.0, 6.0]);
    assert!(!gpu.is_lost());
}
