// params: how the tokens of a reply are chosen, and what is carried from one token to the next.
//
// The first is written before the reply. The second lives on the GPU, so that no token waits for the host.

struct Params {
    vocabulary: u32,
    top_k: u32,
    top_p: vec2<u32>,     // as a long, in units of 2⁻⁶⁴
    temperature: f32,
    lowest: f32,          // of min_p: how far a logit may be below the largest
    filters: u32,         // which of the two are on
    biases: u32,          // entries of `bias`
    repeat: f32,
    frequency: f32,
    presence: f32,
    window: u32,          // how many of the latest tokens are penalised
    slot: u32,            // the conversation's
}

struct State {
    token: u32,           // the last that was chosen
    status: u32,          // zero if it was
    slot: u32,            // of `recent`, where the next token goes
    length: u32,          // slots of `recent` in use
    random: vec4<u32>,
}

const TOP_P: u32 = 1u;
const MIN_P: u32 = 2u;

@group(1) @binding(0) var<uniform> params: Params;

// Where the logits of the row begin that the token is chosen from.
fn first_logit() -> u32 { return step.chosen_rows[params.slot / 4u][params.slot % 4u] * params.vocabulary; }
