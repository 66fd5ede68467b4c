//! What an MP4 file says about the start of a track. Encoders of AAC put up to fifty milliseconds before the first sound, and
//! an edit list tells players to skip them; symphonia does not read it.

/// A box: its kind, and what is in it.
type Box<'b> = ([u8; 4], &'b [u8]);

/// How much of the start of a track is not played, in units of the track's time base.
pub(super) fn skipped(file: &[u8], track: u32) -> u64 {
    let movie = find(file, *b"moov").unwrap_or_default();
    let is_wanted = |body: &&[u8]| find(body, *b"tkhd").and_then(id) == Some(track);
    let body = boxes(movie).filter(|(kind, _)| kind == b"trak").map(|(_, body)| body).find(is_wanted);
    let list = body.and_then(|body| find(body, *b"edts")).and_then(|edits| find(edits, *b"elst"));
    list.and_then(first_time).unwrap_or(0)
}

/// The boxes that lie behind one another in `bytes`. Ends where they make no sense.
fn boxes(mut bytes: &[u8]) -> impl Iterator<Item = Box<'_>> {
    std::iter::from_fn(move || {
        let size = u32::from_be_bytes(*bytes.first_chunk()?);
        let kind = *bytes.get(4..)?.first_chunk()?;
        let (header, size) = match size {
            // The rest of the file.
            0 => (8, bytes.len()),
            1 => (16, usize::try_from(number(bytes.get(8..)?)?).ok()?),
            size => (8, size as usize),
        };
        let body = bytes.get(header..size)?;
        bytes = &bytes[size..];
        Some((kind, body))
    })
}

fn find(bytes: &[u8], wanted: [u8; 4]) -> Option<&[u8]> {
    boxes(bytes).find(|(kind, _)| *kind == wanted).map(|(_, body)| body)
}

fn number(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(*bytes.first_chunk()?))
}

fn small(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.first_chunk()?))
}

/// The number of a track, in its header. Behind version and flags are two times, whose width the version decides.
fn id(header: &[u8]) -> Option<u32> {
    small(header.get(if *header.first()? == 0 { 12 } else { 20 }..)?)
}

/// Where the first edit of a list begins. Edits without a beginning are silence before the track, and come first.
fn first_time(list: &[u8]) -> Option<u64> {
    let entries = list.get(8..)?;
    if *list.first()? == 0 {
        let times = entries.chunks_exact(12).filter_map(|entry| small(&entry[4..]));
        times.map(|time| time as i32).find(|time| *time >= 0).and_then(|time| time.try_into().ok())
    } else {
        let times = entries.chunks_exact(20).filter_map(|entry| number(&entry[8..]));
        times.map(|time| time as i64).find(|time| *time >= 0).and_then(|time| time.try_into().ok())
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    fn boxed(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
        [&(body.len() as u32 + 8).to_be_bytes()[..], kind, body].concat()
    }

    fn track(id: u32, edits: &[u8]) -> Vec<u8> {
        let header = boxed(b"tkhd", &[&[0; 12][..], &id.to_be_bytes(), &[0; 60]].concat());
        boxed(b"trak", &[header, boxed(b"edts", &boxed(b"elst", edits))].concat())
    }

    #[test]
    fn the_first_edit_of_the_right_track_counts() {
        let narrow = [
            0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 9, 255, 255, 255, 255, 0, 1, 0, 0, 0, 0, 0, 9, 0, 0, 4, 0, 0, 1,
            0, 0,
        ];
        let wide = [&[1, 0, 0, 0, 0, 0, 0, 1][..], &[0; 8], &2112_u64.to_be_bytes(), &[0, 1, 0, 0]].concat();
        let movie = boxed(b"moov", &[boxed(b"mvhd", &[0; 100]), track(1, &narrow), track(2, &wide)].concat());
        let file = [boxed(b"ftyp", b"M4A "), movie].concat();
        assert_eq!([1, 2, 3].map(|id| skipped(&file, id)), [1024, 2112, 0]);
        // Cut off anywhere, it skips what it says, or nothing.
        for end in 0..file.len() {
            assert!([0, 1024].contains(&skipped(&file[..end], 1)));
        }
    }
}
