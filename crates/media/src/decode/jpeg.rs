//! Whether a JPEG file is complete. Its decoder fills what is missing with grey, which a model would then describe.

const START_OF_IMAGE: u8 = 0xD8;
const END_OF_IMAGE: u8 = 0xD9;

/// Whether the file's segments lead to the mark at the end of an image.
pub(super) fn is_complete(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    loop {
        // Fill bytes may stand before a marker.
        let Some(start) = rest.windows(2).position(|pair| pair[0] == 0xFF && pair[1] != 0xFF) else {
            return false;
        };
        let marker = rest[start + 1];
        rest = &rest[start + 2..];
        match marker {
            END_OF_IMAGE => return true,
            // An escaped byte of a scan, and markers without a body.
            0x00 | 0x01 | 0xD0..=0xD7 | START_OF_IMAGE => {}
            _ => {
                let Some(length) = rest.first_chunk().map(|&length| usize::from(u16::from_be_bytes(length)))
                else {
                    return false;
                };
                // Behind the body of a scan's segment are compressed data, in which the next marker is looked for too.
                let Some(behind) = rest.get(length..) else { return false };
                rest = behind;
            }
        }
    }
}
