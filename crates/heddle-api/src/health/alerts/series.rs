//! Numbers as they were at each look, as far back as the table of alerts asks for them: what a Prometheus would have of them.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::promql::SeriesSelector;

/// A series that was not there at the last look is gone. One that nobody looked at for so long is, too.
const LOOK_BACK: Duration = Duration::from_secs(300);
/// Series that are kept; further ones are counted, and rules do not see them.
const SERIES_MAX: usize = 10_000;
/// What lies so far back is kept less often: rates over hours need its ends, and not what is between them.
const THINNED_AFTER: Duration = Duration::from_secs(3_660);
const THINNED_TO: Duration = Duration::from_secs(300);

/// Labels without the name of the metric.
pub(super) type Labels = BTreeMap<String, String>;

/// A series by its metric and its labels.
type SeriesName = (String, Labels);

/// What is kept of what was looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct SeriesStore {
    wanted: Vec<(SeriesSelector, Duration)>,
    /// In order, so that sums come to the same each time.
    series: BTreeMap<SeriesName, Series>,
    /// When somebody last looked.
    looked: Option<Duration>,
    /// Series that were left out at the last look.
    pub(super) left_out: u64,
}

#[derive(Clone, Debug, Default)]
struct Series {
    samples: VecDeque<(Duration, f64)>,
    keep: Duration,
}

impl SeriesStore {
    pub(super) fn new(wanted: Vec<(SeriesSelector, Duration)>) -> Self {
        Self {
            wanted,
            ..Self::default()
        }
    }

    /// Takes in all numbers as they are now.
    pub(super) fn look(&mut self, now: Duration, samples: impl Iterator<Item = (SeriesName, f64)>) {
        if self.looked.is_some_and(|looked| now <= looked) {
            return;
        }
        self.looked = Some(now);
        self.left_out = 0;
        for (name, value) in samples {
            let asked = self.wanted.iter();
            let asked = asked.filter(|(selector, _)| selector.matches(&name.0, &name.1));
            let Some(keep) = asked.map(|(_, range)| *range).max() else {
                continue;
            };
            if self.series.len() >= SERIES_MAX && !self.series.contains_key(&name) {
                self.left_out += 1;
                continue;
            }
            let series = self.series.entry(name).or_default();
            series.keep = keep.max(LOOK_BACK);
            series.samples.push_back((now, value));
        }
        for series in self.series.values_mut() {
            series.forget(now);
        }
        self.series.retain(|_, series| !series.samples.is_empty());
    }

    /// Each series that is there now, with its last number.
    pub(super) fn instant(&self, selector: &SeriesSelector, now: Duration) -> Vec<(Labels, f64)> {
        let mut found = Vec::new();
        for ((metric, labels), series) in &self.series {
            if selector.matches(metric, labels)
                && let Some((at, value)) = series.samples.back()
                && Some(*at) == self.looked
                && now.saturating_sub(*at) < LOOK_BACK
            {
                found.push((labels.clone(), *value));
            }
        }
        found
    }

    /// Each series with its numbers of a time that ends now.
    pub(super) fn window(
        &self,
        selector: &SeriesSelector,
        range: Duration,
        now: Duration,
    ) -> Vec<(&Labels, Vec<(f64, f64)>)> {
        let matching = self
            .series
            .iter()
            .filter(|((metric, labels), _)| selector.matches(metric, labels));
        matching
            .map(|((_, labels), series)| {
                let samples = series.samples.iter();
                let within = samples.filter(|(at, _)| *at <= now && now - *at <= range);
                let points = within.map(|(at, value)| (at.as_secs_f64(), *value));
                (labels, points.collect())
            })
            .collect()
    }
}

impl Series {
    fn forget(&mut self, now: Duration) {
        while let Some((at, _)) = self.samples.front()
            && now.saturating_sub(*at) > self.keep
        {
            self.samples.pop_front();
        }
        // One of those that have become old enough meanwhile, if its neighbours are near.
        let old = |at: Duration| now.saturating_sub(at) > THINNED_AFTER;
        let first_young = self.samples.partition_point(|(at, _)| old(*at));
        if first_young >= 3 {
            let (before, after) = (
                self.samples[first_young - 3].0,
                self.samples[first_young - 1].0,
            );
            if after.saturating_sub(before) < THINNED_TO && !self.drops_at(first_young - 2) {
                self.samples.remove(first_young - 2);
            }
        }
    }

    /// Whether a counter began anew around this place: that must not be lost.
    fn drops_at(&self, index: usize) -> bool {
        let value = |index: usize| self.samples.get(index).map(|(_, value)| *value);
        value(index + 1) < value(index) || value(index) < value(index.saturating_sub(1))
    }
}

/// The samples in a text as Prometheus reads it; what is no sample is passed over.
pub(super) fn samples(text: &str) -> impl Iterator<Item = (SeriesName, f64)> + '_ {
    text.lines().filter_map(sample)
}

fn sample(line: &str) -> Option<(SeriesName, f64)> {
    if line.starts_with('#') {
        return None;
    }
    let (name, rest) = match line.split_once('{') {
        Some((name, rest)) if !name.contains(' ') => {
            let (labels, rest) = labels(rest)?;
            ((name.to_owned(), labels), rest)
        }
        _ => {
            let (name, rest) = line.split_once(' ')?;
            ((name.to_owned(), Labels::new()), rest)
        }
    };
    // A moment or an exemplar may follow.
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some((name, value))
}

/// Labels up to the closing brace, and what follows it.
fn labels(mut rest: &str) -> Option<(Labels, &str)> {
    let mut labels = Labels::new();
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (label, behind) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut letters = behind.char_indices();
        let end = loop {
            match letters.next()? {
                (at, '"') => break at,
                (_, '\\') => value.push(match letters.next()? {
                    (_, 'n') => '\n',
                    (_, letter) => letter,
                }),
                (_, letter) => value.push(letter),
            }
        };
        // An empty label is none.
        if !value.is_empty() {
            labels.insert(label.to_owned(), value);
        }
        rest = &behind[end + 1..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read_with_their_labels_whatever_is_in_them() {
        let text = "# TYPE a counter\na_total{app=\"shop\",why=\"\\\"a}, b\\n\\\\\"} 3.5e2 1700\nb 4\nc{x=\"\"} +Inf # {} 1\nnot a sample\nd{x=\"1\" 2\n";
        let found: Vec<(SeriesName, f64)> = samples(text).collect();
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(found[0].0.0, "a_total");
        assert_eq!(found[0].0.1["why"], "\"a}, b\n\\");
        assert!((found[0].1 - 350.0).abs() < f64::EPSILON);
        assert_eq!(found[2].0.1, Labels::new());
    }

    fn one(value: f64) -> impl Iterator<Item = (SeriesName, f64)> {
        std::iter::once((("x".to_owned(), Labels::new()), value))
    }

    #[test]
    fn hours_are_kept_with_less_than_a_sample_a_minute() {
        let selector = SeriesSelector {
            metric: "x".to_owned(),
            labels: Vec::new(),
        };
        let six_hours = Duration::from_secs(6 * 3_600);
        let mut store = SeriesStore::new(vec![(selector.clone(), six_hours)]);
        let minute = |number: u64| Duration::from_secs(60 * number);
        for number in 0..1_000 {
            store.look(minute(number), one(number as f64));
        }
        let kept = store.window(&selector, six_hours, minute(999));
        let points = &kept[0].1;
        assert!(points.len() < 150, "{}", points.len());
        let (first, last) = (points[0], points[points.len() - 1]);
        assert!((last.1 - 999.0).abs() < f64::EPSILON);
        assert!(first.1 <= 645.0, "{first:?}");
        // Gone, and looked at no more.
        store.look(minute(1_000), std::iter::empty());
        assert_eq!(store.instant(&selector, minute(1_000)), []);
        store.look(minute(2_000), std::iter::empty());
        assert!(store.series.is_empty());
    }
}
