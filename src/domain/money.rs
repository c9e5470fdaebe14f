//! Money: whole minor units and a currency. Parsed and printed exactly, by the currency's own exponent; never a float.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An ISO 4217 currency that has a minor unit (XAU and its like have none and are refused).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Currency {
    code: [u8; 3],
    exponent: u8,
}

/// Why a currency or an amount was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    /// Not three letters of ISO 4217.
    #[error("{0:?} is not an ISO 4217 currency")]
    UnknownCurrency(String),
    /// A currency such as XAU.
    #[error("{0} has no minor unit: amounts in it cannot be settled")]
    NoMinorUnit(String),
    /// Not a decimal number.
    #[error("{found:?} is not an amount: expected digits, at most one '.', an optional leading '-'")]
    NotAnAmount {
        /// What was found.
        found: String,
    },
    /// More digits after the point than the currency has.
    #[error("{found:?} has {digits} digits after the point, {currency} has {allowed}")]
    TooPrecise {
        /// What was found.
        found: String,
        /// Digits after the point.
        digits: usize,
        /// The currency.
        currency: Currency,
        /// Digits that the currency has.
        allowed: u8,
    },
    /// Beyond the 64-bit range of minor units.
    #[error("{found:?} is out of range: at most 9223372036854775807 minor units")]
    OutOfRange {
        /// What was found.
        found: String,
    },
}

impl Currency {
    /// Reads a code, in any case.
    ///
    /// # Errors
    /// [`MoneyError::UnknownCurrency`], [`MoneyError::NoMinorUnit`].
    pub fn new(code: &str) -> Result<Self, MoneyError> {
        let upper = code.to_ascii_uppercase();
        let known =
            iso_currency::Currency::from_code(&upper).ok_or_else(|| MoneyError::UnknownCurrency(code.to_owned()))?;
        let exponent = known.exponent().ok_or_else(|| MoneyError::NoMinorUnit(upper.clone()))?;
        let exponent = u8::try_from(exponent).map_err(|_| MoneyError::NoMinorUnit(upper.clone()))?;
        let code = <[u8; 3]>::try_from(upper.as_bytes()).map_err(|_| MoneyError::UnknownCurrency(upper.clone()))?;
        Ok(Self { code, exponent })
    }

    /// The code, upper case.
    #[must_use]
    pub fn code(&self) -> &str {
        std::str::from_utf8(&self.code).unwrap_or("???")
    }

    /// Digits after the point.
    #[must_use]
    pub const fn exponent(&self) -> u8 {
        self.exponent
    }

    /// Reads an amount in major units (`"10.50"`) into minor units (`1050`).
    ///
    /// # Errors
    /// [`MoneyError`] says what was found and what is allowed. Nothing is rounded: also `"10.0"` JPY is refused.
    pub fn parse(&self, text: &str) -> Result<i64, MoneyError> {
        let not = || MoneyError::NotAnAmount { found: text.to_owned() };
        let range = || MoneyError::OutOfRange { found: text.to_owned() };
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, fraction) = match digits.split_once('.') {
            Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
            Some(_) => return Err(not()),
            None => (digits, ""),
        };
        if whole.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
            return Err(not());
        }
        if fraction.len() > usize::from(self.exponent) {
            return Err(MoneyError::TooPrecise {
                found: text.to_owned(),
                digits: fraction.len(),
                currency: *self,
                allowed: self.exponent,
            });
        }
        let padding = usize::from(self.exponent) - fraction.len();
        let mut minor: i64 = 0;
        for digit in whole.bytes().chain(fraction.bytes()).chain(std::iter::repeat_n(b'0', padding)) {
            let digit = i64::from(digit - b'0');
            minor = minor.checked_mul(10).and_then(|m| m.checked_add(digit)).ok_or_else(range)?;
        }
        Ok(if negative { -minor } else { minor })
    }

    /// Prints minor units (`1050`) in major units (`"10.50"`), with exactly the currency's digits. A sum of many amounts may be
    /// wider than any of them.
    #[must_use]
    pub fn format(&self, minor: impl Into<i128>) -> String {
        let minor: i128 = minor.into();
        let exponent = usize::from(self.exponent);
        let sign = if minor < 0 { "-" } else { "" };
        let digits = format!("{:0>width$}", minor.unsigned_abs(), width = exponent + 1);
        let (whole, fraction) = digits.split_at(digits.len() - exponent);
        if exponent == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl TryFrom<String> for Currency {
    type Error = MoneyError;
    fn try_from(code: String) -> Result<Self, MoneyError> {
        Self::new(&code)
    }
}

impl From<Currency> for String {
    fn from(currency: Currency) -> Self {
        currency.code().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn currency(code: &str) -> Currency {
        Currency::new(code).expect(code)
    }

    #[test]
    fn amounts_follow_the_exponent_of_their_currency() {
        for (code, text, minor) in [
            ("EUR", "10.50", 1050),
            ("EUR", "10.5", 1050),
            ("EUR", "-0.01", -1),
            ("JPY", "10000", 10000),
            ("KWD", "18.600", 18600),
            ("CLF", "1.0001", 10001),
            ("EUR", "92233720368547758.07", i64::MAX),
        ] {
            assert_eq!(currency(code).parse(text), Ok(minor), "{code} {text}");
        }
        assert_eq!(currency("KWD").format(18600), "18.600");
        assert_eq!(currency("JPY").format(10900), "10900");
        assert_eq!(currency("EUR").format(-1), "-0.01");
        assert_eq!(currency("EUR").format(i64::MIN), "-92233720368547758.08");
        assert_eq!(currency("EUR").format(i128::from(i64::MAX) * 10), "922337203685477580.70");
    }

    #[test]
    fn nothing_is_rounded_or_guessed() {
        assert!(matches!(currency("JPY").parse("10.5"), Err(MoneyError::TooPrecise { digits: 1, allowed: 0, .. })));
        for bad in ["", "-", ".", "1.", ".5", "1e3", "+1", "1,000", " 1", "--1", "1.2.3", "NaN", "٣"] {
            assert!(matches!(currency("EUR").parse(bad), Err(MoneyError::NotAnAmount { .. })), "{bad:?}");
        }
        assert!(matches!(currency("EUR").parse("92233720368547758.08"), Err(MoneyError::OutOfRange { .. })));
        assert_eq!(Currency::new("XAU"), Err(MoneyError::NoMinorUnit("XAU".into())));
        assert!(matches!(Currency::new("EU"), Err(MoneyError::UnknownCurrency(_))));
        assert_eq!(currency("eur"), currency("EUR"));
    }
}
