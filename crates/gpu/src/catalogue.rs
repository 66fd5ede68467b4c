//! Every kernel that a plan may select, so that tests can compile them all: in naga, which is what native devices and
//! Firefox use, and in real browsers, whose rules are stricter.

use crate::{Fragment, Kernel, KernelSpec, weights::pack::PACKED_FORMATS};

impl KernelSpec {
    /// Every recipe that lowering can come up with, on any device.
    pub fn every() -> Vec<Self> {
        let mut specs: Vec<Self> =
            [Kernel::RmsNorm, Kernel::Rope, Kernel::Copy, Kernel::Route, Kernel::Combine]
                .map(Self::new)
                .into();
        for op in [Fragment::Add, Fragment::Mul, Fragment::Scale, Fragment::SoftCap, Fragment::GeluMul] {
            specs.push(Self::new(Kernel::Elementwise).with(op));
        }
        for (store, load) in
            [(Fragment::StoreF32, Fragment::LoadF32), (Fragment::StoreF16, Fragment::LoadF16)]
        {
            specs.push(Self::new(Kernel::StoreKv).with(store));
            for pairs in [1, 2, 4] {
                specs.push(Self::new(Kernel::Attend).with(load).constant("PAIRS", pairs));
            }
        }
        for format in PACKED_FORMATS {
            let format = Fragment::format(format).expect("a packed format has a fragment that reads it");
            specs.push(Self::new(Kernel::Embed).with(Fragment::Planes).with(format));
            for select in [Fragment::Dense, Fragment::Routed] {
                specs.push(Self::new(Kernel::Linear).with(Fragment::Planes).with(format).with(select));
            }
        }
        specs
    }
}
