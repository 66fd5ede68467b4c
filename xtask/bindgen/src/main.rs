//! `bindgen INPUT.wasm FOLDER NAME`: writes the module that JavaScript imports, its types and the wasm file it loads.
//!
//! The tool's version must be the library's to the last digit. As a dependency it always is, and nobody has to install
//! it; in a package of its own it is compiled only where the browser's files are built.

use std::{env, io::Write as _, process::ExitCode};

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [input, folder, name] = arguments.as_slice() else {
        return fail("usage: bindgen INPUT.wasm FOLDER NAME");
    };
    let mut bindgen = Bindgen::new();
    bindgen.input_path(input).typescript(true).out_name(name);
    // The wasm file lies beside the module, where bundlers look for it as well.
    bindgen.omit_default_module_path(false);
    // Names and the list of producers are of no use to a browser, and every byte of them is downloaded.
    bindgen.remove_name_section(true).remove_producers_section(true);
    match bindgen.web(true).and_then(|bindgen| bindgen.generate(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("{error:#}")),
    }
}

fn fail(problem: &str) -> ExitCode {
    // Nobody is left to be told when this fails.
    let _ = writeln!(std::io::stderr(), "bindgen: {problem}");
    ExitCode::FAILURE
}
