//! Patterns against a matcher that tries everything, and the number of steps they take.

use super::*;

/// How many steps a character of the pattern or the text may cost.
const STEPS_PER_CHARACTER: usize = 3;

impl Meter for usize {
    fn step(&mut self, characters: usize) {
        *self += characters;
    }
}

/// Decides by trying every length for each `%`, over a table so that it ends.
fn model(pattern: &str, text: &str) -> bool {
    let mut wanted = Vec::new();
    for piece in pieces(pattern) {
        wanted.extend(piece.into_iter().map(Some));
        wanted.push(None);
    }
    wanted.pop();
    let text: Vec<char> = text.chars().collect();
    // Whether what was read of the pattern matches the first so many characters.
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    for one in wanted {
        match one {
            None => {
                let first = reached.iter().position(|reached| *reached);
                (first.unwrap_or(reached.len())..reached.len()).for_each(|at| reached[at] = true);
            }
            Some(character) => {
                for at in (0..text.len()).rev() {
                    let fits = character.is_none_or(|character| character == text[at]);
                    reached[at + 1] = reached[at] && fits;
                }
                reached[0] = false;
            }
        }
    }
    reached[text.len()]
}

fn check(pattern: &str, text: &str) {
    let compiled = Pattern::new(pattern).unwrap();
    let mut steps = 0;
    let found = compiled.decide(text, &mut steps);
    assert_eq!(found, model(pattern, text), "{text:?} LIKE {pattern:?}");
    let bound = STEPS_PER_CHARACTER * (pattern.len() + text.len() + 1);
    assert!(steps <= bound, "{steps} steps, of {bound}");
}

/// Every text of these letters up to this length.
fn all(letters: &[&str], length: usize) -> Vec<String> {
    let mut texts = vec![String::new()];
    let mut start = 0;
    for _ in 0..length {
        let end = texts.len();
        for at in start..end {
            let shorter = texts[at].clone();
            texts.extend(letters.iter().map(|letter| shorter.clone() + letter));
        }
        start = end;
    }
    texts
}

#[test]
fn every_short_pattern_decides_as_trying_everything_does() {
    let texts = all(&["a", "é"], 6);
    for pattern in all(&["a", "é", "_", "%"], 5) {
        texts.iter().for_each(|text| check(&pattern, text));
    }
    let texts = all(&["a", "%", "_", "\\"], 3);
    for pattern in all(&["a", "\\", "_", "%"], 5) {
        texts.iter().for_each(|text| check(&pattern, text));
    }
}

#[test]
fn steps_are_linear_in_pattern_and_text() {
    for piece in all(&["a", "_"], 6).into_iter().skip(1) {
        for (times, length) in [(1, 4000), (7, 500), (40, 4000), (40, 3)] {
            for end in ["", "%", "b%", "_b", "%_"] {
                let pattern = format!("%{piece}").repeat(times) + end;
                check(&pattern, &"a".repeat(length));
            }
        }
    }
}

#[test]
fn what_took_pattern_times_text_takes_one_pass() {
    let text = "a".repeat(32 * 1024);
    for pattern in [
        format!("%{}b%", "a_".repeat(60)),
        format!("%{}b%", "_".repeat(1000)),
        format!("%b{}%", "_".repeat(1000)),
        "%a_b".repeat(200) + "%",
        "%_a".repeat(300) + "b%",
        format!("%{}%b", "a".repeat(500)),
    ] {
        check(&pattern, &text);
    }
}

#[test]
fn a_piece_is_as_wide_as_the_state_and_no_wider() {
    let around = |inner: usize| format!("%_a{}b_%", "_".repeat(inner));
    let text = format!("xxa{}bx", "é".repeat(126));
    assert!(Pattern::new(&around(126)).unwrap().matches(&text));
    assert!(!Pattern::new(&around(125)).unwrap().matches(&text));
    assert_eq!(Pattern::new(&around(127)), Err(TooWide));
    // At the ends nothing is looked for, and a text without holes has no width.
    let wide = "a_".repeat(500);
    for pattern in [
        wide.clone(),
        format!("{wide}%"),
        format!("%{wide}"),
        format!("%{}%", "a".repeat(1000)),
    ] {
        Pattern::new(&pattern).unwrap();
    }
}
