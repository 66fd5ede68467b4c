//! A bounded memory of pieces already encoded.
//!
//! Text repeats its words. One encoding keeps the tokens of pieces it has seen in a direct-mapped table:
//! a piece either finds itself in its one place, or takes the place over. What the table points at is
//! kept in two buffers that are emptied together when full, so the cache stays small and forgetting is
//! cheap; nothing but time depends on it.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

/// Places in the table, at most.
const MAX_PLACES: usize = 1 << 13;

/// Entries each buffer may hold before everything is forgotten.
const BUFFER_LIMIT: usize = 1 << 17;

/// Longer pieces are not kept; they hardly recur.
pub(crate) const LONGEST_KEY: usize = 128;

#[derive(Clone, Copy, Default)]
struct Place {
    /// High bits of the hash, to pass over most strangers.
    tag: u32,
    key_at: u32,
    value_at: u32,
    /// Zero marks an empty place: empty keys are never kept.
    key_length: u16,
    value_length: u16,
}

/// Tokens by piece, where a piece is a slice of `K`: bytes, or the symbols of a window.
pub(crate) struct Cache<K> {
    places: Vec<Place>,
    keys: Vec<K>,
    values: Vec<u32>,
}

/// Where a piece belongs, so that a miss need not hash it again.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    place: usize,
    tag: u32,
}

impl<K: Copy + Eq> Cache<K>
where
    [K]: HashKey,
{
    /// A cache for a text of `length`; short texts get none.
    pub(crate) fn new(length: usize) -> Self {
        let places = if length < 256 { 0 } else { (length / 16).next_power_of_two().min(MAX_PLACES) };
        Self { places: vec![Place::default(); places], keys: Vec::new(), values: Vec::new() }
    }

    /// The tokens of `key`, or the slot in which to [`Cache::put`] them; `None` if it is not to be kept.
    #[inline]
    pub(crate) fn get(&self, key: &[K]) -> Result<&[u32], Option<Slot>> {
        if key.len() > LONGEST_KEY || self.places.is_empty() {
            return Err(None);
        }
        let hash = key.hash_key();
        let slot = Slot { place: hash as usize & (self.places.len() - 1), tag: (hash >> 16) as u32 };
        let place = &self.places[slot.place];
        let key_at = place.key_at as usize;
        if place.tag == slot.tag
            && usize::from(place.key_length) == key.len()
            && self.keys[key_at..key_at + key.len()] == *key
        {
            let value_at = place.value_at as usize;
            return Ok(&self.values[value_at..value_at + usize::from(place.value_length)]);
        }
        Err(Some(slot))
    }

    /// Keeps the tokens of `key`.
    pub(crate) fn put(&mut self, slot: Slot, key: &[K], value: &[u32]) {
        if key.is_empty() || key.len() > LONGEST_KEY || value.len() > usize::from(u16::MAX) {
            return;
        }
        if self.keys.len() + key.len() > BUFFER_LIMIT || self.values.len() + value.len() > BUFFER_LIMIT {
            self.places.fill(Place::default());
            self.keys.clear();
            self.values.clear();
        }
        // The limits above keep every number well inside its type.
        self.places[slot.place] = Place {
            tag: slot.tag,
            key_at: self.keys.len() as u32,
            value_at: self.values.len() as u32,
            key_length: key.len() as u16,
            value_length: value.len() as u16,
        };
        self.keys.extend_from_slice(key);
        self.values.extend_from_slice(value);
    }
}

/// A hash of a whole slice, written the fast way for its element type.
pub(crate) trait HashKey {
    /// The hash; the low bits are the best ones.
    fn hash_key(&self) -> u64;
}

impl HashKey for [u8] {
    #[inline]
    fn hash_key(&self) -> u64 {
        let mut hasher = FxHasher::default();
        hasher.write(self);
        hasher.finish()
    }
}

impl HashKey for [u32] {
    #[inline]
    fn hash_key(&self) -> u64 {
        let mut hasher = FxHasher::default();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Many more pieces than fit: every hit returns what was put last under that key.
    #[test]
    fn a_hit_is_always_right() {
        let mut cache = Cache::<u8>::new(1 << 20);
        let mut hits = 0;
        for round in 0..400_000_u32 {
            let number = round.wrapping_mul(2_654_435_761) >> 8 & 0x3FFF;
            let key = number.to_string();
            match cache.get(key.as_bytes()) {
                Ok(value) => {
                    assert_eq!(value, [number, number + 1]);
                    hits += 1;
                }
                Err(Some(slot)) => cache.put(slot, key.as_bytes(), &[number, number + 1]),
                Err(None) => panic!("this cache keeps short pieces"),
            }
        }
        assert!(hits > 100_000, "{hits} hits");
        assert!(cache.keys.len() <= BUFFER_LIMIT && cache.values.len() <= BUFFER_LIMIT);
    }
}
