// planes: reads a packed weight, whose planes lie one after another in one buffer.

fn plane0(row: u32, word: u32) -> u32 { return weight[params.plane_at.x + row * params.plane_words.x + word]; }
fn plane1(row: u32, word: u32) -> u32 { return weight[params.plane_at.y + row * params.plane_words.y + word]; }
fn plane2(row: u32, word: u32) -> u32 { return weight[params.plane_at.z + row * params.plane_words.z + word]; }
