// gelu_pair: gate and up of a feed-forward at once.

const PAIRED: bool = true;

fn finish(row: u32, output: u32, value: f32, second: f32) -> f32 { return gelu(value) * second; }
