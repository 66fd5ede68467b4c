//! The recipe of a kernel: a body, a fragment for each of its slots, and constants.

use std::fmt;

use super::{Binding, Fragment, Kernel, UniformLayout, bindings, params};

/// The compiler for which WGSL is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// naga, which compiles for native programs. It has subgroup functions but not the directive that enables them.
    Naga,
    /// A browser, which requires that directive.
    Browser,
}

impl Dialect {
    /// The dialect of the platform this is compiled for.
    pub const HERE: Self = if cfg!(target_family = "wasm") { Self::Browser } else { Self::Naga };
}

/// The recipe of a kernel. It is the key of its pipeline, and its text is the pipeline's label.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KernelSpec {
    body: Kernel,
    fragments: Vec<Fragment>,
    constants: Vec<(&'static str, u32)>,
}

impl KernelSpec {
    /// A body with the fragments that every kernel has: the step, and functions that keep infinite and NaN values visible.
    pub fn new(body: Kernel) -> Self {
        Self { body, fragments: vec![Fragment::Step, Fragment::Finite], constants: Vec::new() }
    }

    /// With a fragment in one of the body's slots.
    #[must_use]
    pub fn with(mut self, fragment: Fragment) -> Self {
        self.fragments.push(fragment);
        self
    }

    /// With a constant. Several fragments may need the same one.
    #[must_use]
    pub fn constant(mut self, name: &'static str, value: u32) -> Self {
        if !self.constants.contains(&(name, value)) {
            self.constants.push((name, value));
        }
        self
    }

    /// With sums and maxima over a workgroup: through subgroups of this many threads, if the device has them.
    #[must_use]
    pub(crate) fn with_reduce(self, subgroup: Option<u32>) -> Self {
        match subgroup {
            Some(size) => self.with(Fragment::SubgroupReduce).constant("SUBGROUP", size),
            None => self.with(Fragment::Reduce),
        }
    }

    /// The algorithm.
    pub fn body(&self) -> Kernel {
        self.body
    }

    /// Whether it uses subgroup functions.
    pub fn uses_subgroups(&self) -> bool {
        self.mentions("subgroup")
    }

    /// Whether it uses matrix units, which only native devices offer.
    pub fn uses_matrices(&self) -> bool {
        self.mentions("coop_mat")
    }

    /// Whether a word is in its code, comments excepted.
    fn mentions(&self, word: &str) -> bool {
        let mut lines = self.sources().flat_map(|(_, source)| source.lines());
        lines.any(|line| line.split("//").next().is_some_and(|code| code.contains(word)))
    }

    /// The kernel's text.
    pub fn compose(&self, dialect: Dialect) -> String {
        let mut text = String::new();
        if dialect == Dialect::Browser && self.uses_subgroups() {
            text += "enable subgroups;\n";
        }
        if self.uses_matrices() {
            text += "enable f16;\nenable wgpu_cooperative_matrix;\n";
        }
        for (name, value) in &self.constants {
            text += &format!("const {name}: u32 = {value}u;\n");
        }
        for (file, source) in self.sources() {
            text += &format!("\n// ---- {file}\n{source}");
        }
        text
    }

    /// The buffers that it declares, without the step's.
    pub(crate) fn bindings(&self) -> Vec<Binding> {
        self.sources().flat_map(|(file, source)| bindings::declared(file, source)).collect()
    }

    /// The layouts of the uniform variables that its files declare, including the step's.
    pub fn uniforms(&self) -> Vec<UniformLayout> {
        let declared = |file: &'static str| params::LAYOUTS.iter().filter(move |layout| layout.file == file);
        self.sources().flat_map(|(file, _)| declared(file)).copied().collect()
    }

    fn sources(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let fragments = self.fragments.iter().map(|fragment| (fragment.file(), fragment.source()));
        fragments.chain([(self.body.file(), self.body.source())])
    }
}

impl fmt::Display for KernelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.body.name())?;
        for fragment in self.fragments.iter().filter(|fragment| !fragment.is_shared()) {
            write!(f, "+{}", fragment.name())?;
        }
        self.constants.iter().try_for_each(|(name, value)| write!(f, " {}={value}", name.to_lowercase()))
    }
}
