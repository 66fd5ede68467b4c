// step: what varies between steps. Bound to every kernel.

struct Step { rows: u32, position: u32 }
