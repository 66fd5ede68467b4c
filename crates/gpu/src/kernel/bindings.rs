//! The buffers of a kernel, read from its text.
//!
//! A dispatch names buffers as the kernel does, so there is no second list of binding numbers. Each declaration is one line:
//!
//! ```wgsl
//! @group(1) @binding(2) var<storage, read_write> y: array<f32>;
//! ```
//!
//! Group 0 has the step's row table, the same for every kernel; group 1 has the buffers of a dispatch.

use super::UniformLayout;

/// How a kernel uses a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Access {
    Read,
    Write,
    Uniform,
}

/// A buffer that a kernel declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Binding {
    pub(crate) number: u32,
    pub(crate) name: &'static str,
    pub(crate) access: Access,
    /// The WGSL file that declares it.
    pub(crate) file: &'static str,
}

impl Binding {
    /// True if a struct of this layout may be bound here.
    pub(crate) fn is_for(&self, layout: &UniformLayout) -> bool {
        (self.name, self.file) == (layout.variable, layout.file)
    }
}

/// The buffers that a file declares in the dispatch's group.
pub(super) fn declared(file: &'static str, source: &'static str) -> impl Iterator<Item = Binding> {
    source.lines().filter_map(move |line| {
        let rest = line.strip_prefix("@group(1) @binding(")?;
        let (number, rest) = rest.split_once(')')?;
        let (kind, rest) = rest.trim_start().strip_prefix("var<")?.split_once('>')?;
        let (name, _) = rest.split_once(':')?;
        let access = match kind {
            "uniform" => Access::Uniform,
            "storage, read" => Access::Read,
            _ => Access::Write,
        };
        Some(Binding { number: number.parse().ok()?, name: name.trim(), access, file })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_found() {
        let source = "\
@group(0) @binding(0) var<uniform> step: Step;
@group(1) @binding(0) var<uniform> params: Params;
@group(1) @binding(3) var<storage, read> x: array<f32>;
@group(1) @binding(7) var<storage, read_write>  y: array<vec4<u32>>;
fn main() {}
";
        let found: Vec<_> =
            declared("kernel/some.wgsl", source).map(|b| (b.number, b.name, b.access)).collect();
        assert_eq!(found, [(0, "params", Access::Uniform), (3, "x", Access::Read), (7, "y", Access::Write)]);
    }
}
