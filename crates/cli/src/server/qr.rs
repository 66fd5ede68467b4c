//! Draws a URL as a QR code with half blocks, for phones.

use qrcode::{EcLevel, QrCode, render::unicode::Dense1x2};

/// Black on white, whatever the terminal's colours are: some cameras can't read inverted codes.
const BLACK_ON_WHITE: &str = "\x1b[38;5;16;48;5;231m";
const PLAIN: &str = "\x1b[0m";

/// The code as lines of text; `None` if the URL is too long.
pub(crate) fn qr_code(address: &str) -> Option<String> {
    let code = QrCode::with_error_correction_level(address, EcLevel::L).ok()?;
    let drawn = code.render::<Dense1x2>().quiet_zone(true).build();
    Some(drawn.lines().map(|line| format!("{BLACK_ON_WHITE}{line}{PLAIN}\n")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An address fits into 25 modules a side, with four empty ones around, two to a line.
    #[test]
    fn a_code_fits_into_a_small_terminal() {
        let drawn = qr_code("https://192.168.178.123:11435/").unwrap();
        assert_eq!(drawn.lines().count(), 17);
        assert!(drawn.lines().all(|line| line.chars().filter(|c| " ▀▄█".contains(*c)).count() == 33));
        // The corner of the pattern by which a camera finds the code: seven modules in a row, behind an empty one.
        let corner = drawn.lines().nth(2).unwrap();
        assert!(corner.contains("    █▀▀▀▀▀█ "), "{corner}");
    }
}
