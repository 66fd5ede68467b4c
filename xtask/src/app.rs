//! Building the web app: the engine as wasm, the npm package around it, the app that uses the package.

use crate::{shell::run, web};

pub(crate) fn build() -> bool {
    web::build() && run(&["npm", "run", "build", "--prefix", "packages/app"])
}
