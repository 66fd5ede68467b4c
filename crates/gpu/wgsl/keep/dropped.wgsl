// dropped: nobody else reads the sum.

const KEPT: bool = false;

fn keep(four: u32, sum: vec4<f32>) {}
