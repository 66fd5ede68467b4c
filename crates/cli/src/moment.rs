//! Moments as text. A few lines are all that is needed of a calendar.

use std::time::{SystemTime, UNIX_EPOCH};

/// A day as `2026-08-22`, in UTC.
pub(crate) fn date(time: SystemTime) -> String {
    date_and_time(time)[..10].to_owned()
}

/// A moment as `2026-08-22T10:05:00`, in UTC.
pub(crate) fn date_and_time(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// A moment as `2026-08-22T10:05:00.250Z`, as JavaScript's `toISOString` writes it.
pub(crate) fn precise(time: SystemTime) -> String {
    let milliseconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_millis());
    format!("{}.{milliseconds:03}Z", date_and_time(time))
}

/// Year, month and day of a day counted from 1970-01-01.
///
/// Years are counted from March, so that the leap day is a year's last, and in cycles of 400.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // from 0000-03-01
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (400 * cycle + year + carry, month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn moments_are_written_as_dates() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_399, "2000-02-28T23:59:59"),
            (951_782_400, "2000-02-29T00:00:00"),
            (1_709_251_200, "2024-03-01T00:00:00"),
            (4_102_444_799, "2099-12-31T23:59:59"),
        ] {
            assert_eq!(date_and_time(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
        assert_eq!(precise(UNIX_EPOCH + Duration::from_millis(61_007)), "1970-01-01T00:01:01.007Z");
    }
}
