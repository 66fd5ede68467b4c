//! Arbitrary text as a model name, a digest, a manifest and a configuration.

#![no_main]

use rullama_gguf::ollama::{Config, Digest, Manifest, Name};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(name) = text.parse::<Name>() {
        assert_eq!(name.full().parse::<Name>().expect("a full name is a name"), name);
        assert_eq!(name.to_string().parse::<Name>().expect("a short name is a name"), name);
        assert_eq!(name.manifest_path().components().count(), 4, "a name stays in the store");
    }
    if let Ok(digest) = text.parse::<Digest>() {
        assert_eq!(digest.to_string().parse(), Ok(digest));
    }
    if let Ok(manifest) = serde_json::from_str::<Manifest>(text) {
        let _ = manifest.size();
    }
    let _ = serde_json::from_str::<Config>(text);
});
