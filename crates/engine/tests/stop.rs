//! Stop strings cut a text where its definition says, however it comes.

use proptest::prelude::*;
use rullama_engine::StopStrings;

/// Pushes chunks and returns what was released, with whether a stop string was met.
fn run<'a>(stop: &mut StopStrings, chunks: impl IntoIterator<Item = &'a str>) -> (String, bool) {
    let mut text = String::new();
    let mut stopped = false;
    for chunk in chunks {
        let released = stop.push(chunk);
        assert!(!stopped || released.text.is_empty() && released.stopped, "text after the end");
        text.push_str(released.text);
        stopped = released.stopped;
    }
    let released = stop.finish();
    assert!(!stopped || released.text.is_empty() && released.stopped, "text after the end");
    text.push_str(released.text);
    (text, released.stopped)
}

fn strings(strings: &[&str]) -> Vec<String> {
    strings.iter().map(|&string| string.to_owned()).collect()
}

/// The text up to the first place where any of the strings is.
fn definition(strings: &[String], text: &str) -> (String, bool) {
    let nonempty = strings.iter().filter(|string| !string.is_empty());
    match nonempty.filter_map(|string| text.find(string)).min() {
        Some(at) => (text[..at].to_owned(), true),
        None => (text.to_owned(), false),
    }
}

/// Text of few different characters, some of two bytes that begin alike, so that much of it matches.
fn text(length: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    let character = prop::sample::select(vec!['a', 'a', 'a', 'b', 'b', 'é', 'è']);
    prop::collection::vec(character, length).prop_map(String::from_iter)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(target_family = "wasm") { 300 } else { 3000 }))]

    #[test]
    fn any_cutting_gives_the_text_up_to_the_first_stop_string(
        strings in prop::collection::vec(text(0..6), 0..4),
        text in text(0..40),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let characters: Vec<char> = text.chars().collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(characters.len() + 1)).collect();
        cuts.extend([0, characters.len()]);
        cuts.sort_unstable();
        let chunks: Vec<String> =
            cuts.windows(2).map(|cut| characters[cut[0]..cut[1]].iter().collect()).collect();
        let expected = definition(&strings, &text);

        let mut stop = StopStrings::new(&strings);
        prop_assert_eq!(run(&mut stop, chunks.iter().map(String::as_str)), expected.clone());
        // Again with the same value, a character at a time: nothing is left of the text before.
        let singles: Vec<String> = characters.iter().map(char::to_string).collect();
        prop_assert_eq!(run(&mut stop, singles.iter().map(String::as_str)), expected);
    }

    /// What is held back is the longest end of the text that begins a stop string, and no more.
    #[test]
    fn no_more_is_held_back_than_needed(strings in prop::collection::vec(text(1..6), 1..4), text in text(0..30)) {
        let mut stop = StopStrings::new(&strings);
        let mut seen = String::new();
        let mut out = String::new();
        for character in text.chars() {
            seen.push(character);
            let released = stop.push(character.encode_utf8(&mut [0; 4]));
            out.push_str(released.text);
            if released.stopped || definition(&strings, &seen).1 {
                break;
            }
            let held = seen
                .char_indices()
                .map(|(at, _)| &seen[at..])
                .find(|end| strings.iter().any(|string| string.starts_with(end)))
                .unwrap_or("");
            prop_assert_eq!(format!("{out}{held}"), &*seen);
        }
    }
}

#[test]
fn the_string_that_begins_first_wins() {
    // `bc` is complete before `abcd` is, and begins after it.
    let overlapping = strings(&["abcd", "bc"]);
    assert_eq!(run(&mut StopStrings::new(&overlapping), ["xabcd"]), ("x".to_owned(), true));
    assert_eq!(run(&mut StopStrings::new(&overlapping), ["xabc", "e"]), ("xa".to_owned(), true));
    assert_eq!(run(&mut StopStrings::new(&overlapping), ["xabc"]), ("xa".to_owned(), true));

    let mut stop = StopStrings::new(&overlapping);
    let released = stop.push("xabc");
    assert_eq!((released.text, released.stopped), ("x", false), "not certain where it stops");
    assert!(stop.push("e").stopped);

    // The same after text that was released long ago.
    let chunks = ["much text before it: ", "語🦀 ", "abc", "", "e"];
    let expected = ("much text before it: 語🦀 a".to_owned(), true);
    assert_eq!(run(&mut StopStrings::new(&overlapping), chunks), expected);
    let mut stop = StopStrings::new(&overlapping);
    assert_eq!(stop.push("much text before it: abc").text, "much text before it: ");
    assert_eq!(stop.push("e").text, "a");
}

#[test]
fn a_complete_stop_string_stops_at_once() {
    let mut stop = StopStrings::new(&strings(&["aab", "aabb"]));
    let released = stop.push("caaab");
    assert_eq!((released.text, released.stopped), ("ca", true));
    assert_eq!(stop.push("more").text, "");
    assert!(stop.finish().stopped);
    assert_eq!(stop.push("next").text, "next", "ready for another text");
}

#[test]
fn without_stop_strings_text_passes_unchanged() {
    for none in [vec![], strings(&["", ""])] {
        let mut stop = StopStrings::new(&none);
        assert_eq!(stop.push("a\n語").text, "a\n語");
        let rest = stop.finish();
        assert_eq!((rest.text, rest.stopped), ("", false));
    }
}

#[test]
fn half_a_stop_string_comes_in_the_end() {
    let mut stop = StopStrings::new(&strings(&["<end>"]));
    assert_eq!(stop.push("so <en").text, "so ");
    assert_eq!(stop.push("").text, "");
    let rest = stop.finish();
    assert_eq!((rest.text, rest.stopped), ("<en", false));
}

/// A long stop string that the text keeps beginning: the worst case for time and for what is held back.
#[test]
fn long_stop_strings_are_held_back_whole() {
    let mut string = "a".repeat(50_000);
    string.push('b');
    let mut stop = StopStrings::new(&[string]);
    let mut released = 0;
    for _ in 0..400_000 {
        released += stop.push("a").text.len();
    }
    assert_eq!(released, 350_000);
    assert_eq!(stop.finish().text.len(), 50_000);
}
