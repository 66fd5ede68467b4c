// step: what varies between steps. The same for every kernel.

struct Step { rows: u32, position: u32 }

@group(0) @binding(0) var<uniform> step: Step;
