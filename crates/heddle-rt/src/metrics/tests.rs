//! The text is what Prometheus reads, and nothing that was recorded is missing from it.

use super::*;

const BOUNDS: [f64; 4] = [0.0005, 0.1, 1.0, 600.0];

#[test]
fn a_histogram_is_written_with_buckets_that_add_up() {
    let histogram = Histogram::of_seconds(&BOUNDS);
    for took in [0, 100, 250, 1000, 3_600_000] {
        histogram.observe(Duration::from_millis(took));
    }
    let mut out = String::new();
    family(&mut out, "took_seconds", "histogram", "How long it took.");
    histogram.write(&mut out, "took_seconds", "hop=\"source\"");
    assert_eq!(
        out,
        "# HELP took_seconds How long it took.\n\
         # TYPE took_seconds histogram\n\
         took_seconds_bucket{hop=\"source\",le=\"0.0005\"} 1\n\
         took_seconds_bucket{hop=\"source\",le=\"0.1\"} 2\n\
         took_seconds_bucket{hop=\"source\",le=\"1\"} 4\n\
         took_seconds_bucket{hop=\"source\",le=\"600\"} 4\n\
         took_seconds_bucket{hop=\"source\",le=\"+Inf\"} 5\n\
         took_seconds_sum{hop=\"source\"} 3601.35\n\
         took_seconds_count{hop=\"source\"} 5\n"
    );
}

#[test]
fn a_histogram_without_labels_has_only_its_bounds() {
    let histogram = Histogram::of_seconds(&[1.0]);
    histogram.observe(Duration::from_secs(2));
    let mut out = String::new();
    histogram.write(&mut out, "took_seconds", "");
    assert_eq!(
        out,
        "took_seconds_bucket{le=\"1\"} 0\n\
         took_seconds_bucket{le=\"+Inf\"} 1\n\
         took_seconds_sum 2\n\
         took_seconds_count 1\n"
    );
}

#[test]
fn whole_numbers_are_summed_without_loss() {
    let histogram = Histogram::of_counts(&[1.0, 8.0]);
    for count in [1, 2, 8, 9] {
        histogram.record(count);
    }
    let snapshot = histogram.snapshot();
    assert_eq!(snapshot.counts, [1, 2, 1]);
    assert_eq!(snapshot.count(), 4);
    assert!((snapshot.sum - 20.0).abs() < f64::EPSILON);
}

#[test]
fn samples_have_braces_only_around_labels() {
    let mut out = String::new();
    sample(&mut out, "up", "", 1);
    let name = escaped("a \"b\" \\ c\nd");
    sample(&mut out, "up", &format!("name=\"{name}\""), 0.5);
    assert_eq!(out, "up 1\nup{name=\"a \\\"b\\\" \\\\ c\\nd\"} 0.5\n");
    assert!(matches!(escaped("plain"), Cow::Borrowed("plain")));
}

#[test]
fn numbers_of_many_threads_are_all_counted_and_keys_stay_within_their_bound() {
    const KEYS: usize = 10;
    let map: LabelMap<Box<str>, AtomicU64> = LabelMap::default();
    let count_all = || {
        for number in 0..1000 {
            let key = format!("key-{}", number % 20);
            let name = |known| if known < KEYS { &*key } else { "rest" }.into();
            map.update(&*key, name, |count| {
                count.fetch_add(1, Ordering::Relaxed);
            });
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(count_all);
        }
    });
    let counted = map.sorted();
    assert_eq!(counted.len(), KEYS + 1);
    assert!(counted.is_sorted_by_key(|(key, _)| key.clone()));
    let total = counted
        .iter()
        .map(|(_, count)| count.load(Ordering::Relaxed));
    assert_eq!(total.sum::<u64>(), 4000);
}
