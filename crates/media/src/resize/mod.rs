//! Bicubic resampling with antialiasing, as torchvision does it for images of bytes.
//!
//! Hugging Face resizes images by torchvision, whose filter on bytes computes with integers: weights of sixteen bits, first
//! along rows, then along columns, each rounded to bytes. The same integers here give the same bytes on every machine.

mod filter;

use std::collections::VecDeque;

use self::filter::Filter;
use crate::{Pixels, pixels::CHANNELS};

/// `source` in another size.
///
/// Rows are resampled when they are first needed and dropped after their last use, so that a tall image needs no more memory
/// than a wide one.
pub(crate) fn bicubic(source: &Pixels, [width, height]: [u32; 2]) -> Pixels {
    let along_rows = (width != source.width()).then(|| Filter::new(source.width(), width));
    let along_columns = Filter::new(source.height(), height);
    let stride = width as usize * CHANNELS;
    let mut bytes = Vec::with_capacity(stride * height as usize);
    // Resampled rows, of which the first is row `first` of the source.
    let mut rows: VecDeque<Vec<u8>> = VecDeque::new();
    let mut first = 0;
    let mut sums = vec![0; stride];
    for taps in along_columns.taps() {
        while first < taps.first && rows.pop_front().is_some() {
            first += 1;
        }
        first = taps.first;
        while rows.len() < taps.weights.len() {
            let row = source.row(first + rows.len());
            rows.push_back(along_rows.as_ref().map_or_else(|| row.to_vec(), |filter| resample(row, filter)));
        }
        sums.fill(along_columns.half());
        for (&weight, row) in taps.weights.iter().zip(&rows) {
            let weight = i32::from(weight);
            sums.iter_mut().zip(row).for_each(|(sum, &byte)| *sum += weight * i32::from(byte));
        }
        bytes.extend(sums.iter().map(|&sum| along_columns.byte(sum)));
    }
    Pixels::of_size([width, height], bytes)
}

/// A row in another width.
fn resample(row: &[u8], filter: &Filter) -> Vec<u8> {
    let (pixels, _) = row.as_chunks::<CHANNELS>();
    let pixel = |taps: filter::Taps<'_>| {
        let mut sums = [filter.half(); CHANNELS];
        for (&weight, pixel) in taps.weights.iter().zip(&pixels[taps.first..]) {
            let weight = i32::from(weight);
            sums.iter_mut().zip(pixel).for_each(|(sum, &byte)| *sum += weight * i32::from(byte));
        }
        sums.map(|sum| filter.byte(sum))
    };
    filter.taps().flat_map(pixel).collect()
}
