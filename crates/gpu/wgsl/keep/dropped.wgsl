// dropped: nobody else reads the sum.

fn keep(four: u32, sum: vec4<f32>) {}
