//! Names that people choose, checked once where they enter.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a name was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not a valid {what}: expected {allowed}")]
pub struct NameError {
    /// What kind of name was expected.
    pub what: &'static str,
    /// What was found.
    pub found: String,
    /// What is allowed.
    pub allowed: &'static str,
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $allowed:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Checks and wraps a name.
            ///
            /// # Errors
            /// [`NameError`] says what is allowed.
            pub fn new(text: impl Into<String>) -> Result<Self, NameError> {
                let text = text.into();
                let check: fn(&str) -> bool = $check;
                if check(&text) {
                    Ok(Self(text))
                } else {
                    Err(NameError { what: $what, found: text, allowed: $allowed })
                }
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }
    };
}

fn is_slug(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

name!(
    /// A named contest with at most one leader per term.
    ElectionName, "election name", "1 to 32 of a-z, 0-9 and '-'", |t| is_slug(t, 32)
);
name!(
    /// A schedule entry's name; lower case, because the environment layer of the configuration lower-cases keys.
    JobName, "job name", "1 to 64 of a-z, 0-9 and '-'", |t| is_slug(t, 64)
);
name!(
    /// One running process: host name and a random part, new at every start.
    ReplicaId, "replica id", "1 to 128 of A-Z, a-z, 0-9, '.', '_' and '-'",
    |t| (1..=128).contains(&t.len()) && t.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_refused_with_what_is_allowed() {
        assert!(ElectionName::new("settlement").is_ok());
        assert!(ElectionName::new("a".repeat(32)).is_ok());
        for bad in ["", "Upper", "dot.ted", &"a".repeat(33), "ümlaut"] {
            let error = ElectionName::new(bad).expect_err(bad);
            assert!(error.to_string().contains("1 to 32 of a-z"), "{error}");
        }
    }
}
