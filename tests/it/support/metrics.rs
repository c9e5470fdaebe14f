//! A scrape, read: Prometheus' text format as series with labels.

use std::collections::BTreeMap;
use std::io::Write as _;

/// One sample of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its value.
    pub value: f64,
}

/// All series of one scrape, by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metrics(BTreeMap<String, Vec<Sample>>);

impl Metrics {
    /// Reads what `/metrics` gave.
    ///
    /// # Errors
    /// The first line that is no sample.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut metrics = Self::default();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (name, sample) = parse_line(line).ok_or_else(|| format!("no sample: {line:?}"))?;
            metrics.0.entry(name).or_default().push(sample);
        }
        Ok(metrics)
    }

    /// All samples of a series.
    pub fn all(&self, name: &str) -> &[Sample] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// The value of the one sample that has these labels (and perhaps more); `None` where there is no such one.
    ///
    /// # Panics
    /// Where there are several.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let matching: Vec<&Sample> = self
            .all(name)
            .iter()
            .filter(|sample| labels.iter().all(|(key, value)| sample.labels.get(*key).is_some_and(|is| is == value)))
            .collect();
        assert!(matching.len() <= 1, "{name} {labels:?} is not one series: {matching:?}");
        matching.first().map(|sample| sample.value)
    }

    /// The sum over all samples of a series; 0 where there is none.
    pub fn sum(&self, name: &str) -> f64 {
        self.all(name).iter().map(|sample| sample.value).sum()
    }

    /// How many samples there are in all.
    pub fn series(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// The names of all series.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Every label's key and value, for tests of what must not be in one.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.values().flatten().flat_map(|sample| &sample.labels).map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

/// `name{key="value",…} number`, a time stamp after it being ignored.
fn parse_line(line: &str) -> Option<(String, Sample)> {
    let (name, labels, rest) = match line.split_once('{') {
        Some((name, rest)) => {
            let (labels, rest) = parse_labels(rest)?;
            (name, labels, rest)
        }
        None => line.split_once(' ').map(|(name, rest)| (name, BTreeMap::new(), rest))?,
    };
    let value = match rest.split_whitespace().next()? {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        number => number.parse().ok()?,
    };
    Some((name.to_owned(), Sample { labels, value }))
}

/// Reads up to the closing brace; gives the labels and what follows.
fn parse_labels(text: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut labels = BTreeMap::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (key, quoted) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut characters = quoted.char_indices();
        loop {
            match characters.next()? {
                (at, '"') => {
                    rest = quoted.get(at + 1..)?;
                    break;
                }
                (_, '\\') => match characters.next()?.1 {
                    'n' => value.push('\n'),
                    escaped => value.push(escaped),
                },
                (_, plain) => value.push(plain),
            }
        }
        labels.insert(key.to_owned(), value);
    }
}

/// Prints a figure past the harness, which keeps to itself what a test prints.
pub fn measured(line: &str) {
    // What cannot be written is only not seen.
    writeln!(std::io::stdout(), "measured: {line}").ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scrape_is_read_with_labels_escapes_and_infinity() {
        let text =
            "# HELP up is it\n# TYPE up gauge\nup 1\n\nx_bucket{le=\"+Inf\",job=\"a \\\"b\\\\\"} 3 1700000\ny{} +Inf\n";
        let metrics = Metrics::parse(text).expect("it is well formed");
        assert_eq!(metrics.value("up", &[]), Some(1.0));
        assert_eq!(metrics.value("x_bucket", &[("job", "a \"b\\"), ("le", "+Inf")]), Some(3.0));
        assert_eq!(metrics.value("x_bucket", &[("job", "other")]), None);
        assert!(metrics.sum("y").is_infinite());
        assert_eq!(metrics.series(), 3);
    }

    #[test]
    fn what_is_no_sample_is_refused() {
        for text in ["name", "name{a=\"b\" 1", "name{a=b} 1", "name x"] {
            assert!(Metrics::parse(text).is_err(), "{text}");
        }
    }
}
