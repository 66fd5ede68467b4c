//! Building the web app: the engine as wasm, the npm package around it, the app that uses the package.

use crate::{
    shell::{complain, output, root, run, say},
    web,
};

/// Builds what there is of the three. False when something that is there cannot be built.
pub(crate) fn build() -> bool {
    if !root().join("packages/app/package.json").is_file() {
        say("note: there is no web app in packages/app; the server has the models, and a page that says so.");
        return true;
    }
    if output(&["node", "--version"]).is_none() {
        complain("note: Node (20 or later) builds the web app, and is not installed.");
        return true;
    }
    web::build() && run(&["npm", "run", "build", "--prefix", "packages/app"])
}
