//! `logit_bias` in JSON: an object from ids, which are strings there, to numbers. JSON has no −∞, so a
//! token that is ruled out has `false`, as in llama.cpp's server. Reading is done in `read`.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer, ser::SerializeMap};

/// One bias as JSON writes it.
#[derive(Serialize)]
#[serde(untagged)]
enum Bias {
    Number(f32),
    Never(bool),
}

pub(super) fn serialize<S: Serializer>(bias: &BTreeMap<u32, f32>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(bias.len()))?;
    for (id, &value) in bias {
        let value = if value == f32::NEG_INFINITY { Bias::Never(false) } else { Bias::Number(value) };
        map.serialize_entry(&id.to_string(), &value)?;
    }
    map.end()
}
