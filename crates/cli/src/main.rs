//! rullama.
fn main() {}
