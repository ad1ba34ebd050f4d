//! Texts that are almost expressions: what the fuzzer begins with, and everything one slip of the finger away from it.

#[path = "soup/mod.rs"]
mod soup;

const SEEDS: [&str; 5] = [
    include_str!("../../../fuzz/seeds/cesql/comparison"),
    include_str!("../../../fuzz/seeds/cesql/functions"),
    include_str!("../../../fuzz/seeds/cesql/like"),
    include_str!("../../../fuzz/seeds/cesql/lists"),
    include_str!("../../../fuzz/seeds/cesql/numbers"),
];

#[test]
fn an_expression_and_whatever_is_close_to_one_is_read_or_refused() {
    for seed in SEEDS {
        assert!(soup::cesql(seed.trim_end()), "{seed}");
        let starts: Vec<usize> = seed.char_indices().map(|(at, _)| at).collect();
        for (index, at) in starts.iter().enumerate() {
            let next = starts.get(index + 1).copied().unwrap_or(seed.len());
            let (before, one, after) = (&seed[..*at], &seed[*at..next], &seed[next..]);
            soup::cesql(before);
            soup::cesql(after);
            soup::cesql(&[before, after].concat());
            soup::cesql(&[before, one, one, after].concat());
            for slip in ["(", ")", "'", "\\", "-", "%", " NOT ", "\u{0}", "é"] {
                soup::cesql(&[before, slip, after].concat());
            }
        }
    }
}
