//! A GPU that goes away is an error of whatever is asked of it next, and never a panic.

use std::rc::Rc;

use crate::common::{graph, open, opened, try_load};
use rullama_gemma::Outputs;
use rullama_gguf::Model;
use rullama_gpu::{
    Fragment, Gpu, GpuError, GpuModel, GpuOptions, GpuState, Kernel, KernelSpec, ModelOptions, Sampling,
    params::ElementwiseParams,
};
use rullama_gpu_lab::{Lab, Step};

const PROMPT: [u32; 4] = [2, 610, 483, 716];

fn device() -> Gpu {
    opened(&GpuOptions::default().without_self_test())
}

fn file() -> Rc<Model> {
    open("micro-e2b-F16")
}

fn load(gpu: &Gpu, model: &Rc<Model>) -> Result<Rc<GpuModel>, GpuError> {
    try_load(gpu, model, graph(model, Outputs::Last), &ModelOptions::default().context(64)).map(Rc::new)
}

fn step(state: &mut GpuState) -> Result<Vec<f32>, GpuError> {
    pollster::block_on(state.step(&PROMPT))
}

fn begin(state: &mut GpuState) -> Result<(), GpuError> {
    pollster::block_on(state.begin(&PROMPT, &Sampling::GREEDY, &PROMPT, 40))
}

fn is_lost<T>(result: Result<T, GpuError>) -> bool {
    matches!(result, Err(GpuError::Lost { .. }))
}

#[test]
fn whatever_is_asked_of_a_lost_gpu_says_so() {
    let (gpu, model) = (device(), file());
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

    let weights = pollster::block_on(loaded.weights().reopen()).unwrap();
    let again = Rc::new(pollster::block_on(loaded.reload(&weights, &mut |_, _| {})).unwrap());
    assert_eq!(step(&mut again.state().unwrap()).unwrap(), before);
    assert!(!again.gpu().is_lost());
}

/// Lost before anything else is asked of it.
#[test]
fn a_gpu_can_be_lost_before_a_model_is_loaded() {
    let gpu = device();
    gpu.destroy();
    assert!(is_lost(load(&gpu, &file())));
    let gpu = device();
    gpu.destroy();
    assert!(is_lost(pollster::block_on(rullama_gpu::self_test(&gpu))));
}

/// A dispatch of more workgroups than there may be.
#[test]
fn a_refused_command_is_an_error_and_no_more() {
    let gpu = device();
    let lab = Lab::new(&gpu);
    let (a, b, y) = (lab.floats(&[1.0, 2.0]), lab.floats(&[3.0, 4.0]), lab.floats(&[0.0; 2]));
    let spec =
        KernelSpec::new(Kernel::Elementwise).with(Fragment::Gelu).with(Fragment::Reduce).with(Fragment::Add);
    let spec = spec.constant("LANES", 64).constant("EACH", 1);
    let run = |workgroups: u32| {
        let params = ElementwiseParams { width: 2, b_at: 0, b_period: 2, constant: 0.0, other: 0.0 };
        let buffers = [("a", &a), ("b", &b), ("y", &y)];
        let kernel = lab.prepare(&spec, &[params.into()], &buffers, [workgroups, 1, 1]);
        lab.run(&[kernel], &Step::new(1, 0));
        pollster::block_on(lab.read(&y))
    };
    let error = run(1 << 20).unwrap_err();
    assert!(matches!(error, GpuError::Refused { .. }), "{error:?}");
    assert_eq!(error.code(), "device.refused");
    assert_eq!(run(1).unwrap(), [4.0, 6.0]);
    assert!(!gpu.is_lost());
}
