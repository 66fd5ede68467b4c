//! Building the web app: the engine as wasm, the npm package around it, and the app that uses the package.

use std::{fs::File, io, time::SystemTime};

use crate::{
    shell::{complain, root, run},
    web,
};

pub(crate) fn build() -> bool {
    web::build() && run(&["npm", "run", "build", "--prefix", "packages/app"])
}

/// Makes cargo embed the app as it is now. Cargo compares times, and a built app that was copied or unpacked is older than
/// the program that does not have it yet.
pub(crate) fn mark_as_new() -> bool {
    let index = root().join("packages/app/dist/index.html");
    let touched =
        File::options().append(true).open(&index).and_then(|file| file.set_modified(SystemTime::now()));
    let said = |error: &io::Error| {
        complain(&format!("error: the web app is not built: {}: {error}", index.display()))
    };
    touched.inspect_err(said).is_ok()
}
