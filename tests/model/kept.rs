//! A value with its fingerprint, so that a state of a world is cloned and compared without going through the parts that a
//! step left alone.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A value that is replaced, never changed.
#[derive(Clone)]
pub struct Kept<T> {
    value: Arc<T>,
    print: u64,
}

impl<T: Hash> Kept<T> {
    /// Keeps a value.
    pub fn new(value: T) -> Self {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        Self { print: hasher.finish(), value: Arc::new(value) }
    }
}

impl<T: Clone + Hash> Kept<T> {
    /// Changes a copy, and keeps that.
    pub fn change<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut copy = T::clone(&self.value);
        let result = change(&mut copy);
        *self = Self::new(copy);
        result
    }
}

impl<T> std::ops::Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: PartialEq> PartialEq for Kept<T> {
    fn eq(&self, other: &Self) -> bool {
        self.print == other.print && self.value == other.value
    }
}

impl<T: Eq> Eq for Kept<T> {}

impl<T> Hash for Kept<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.print);
    }
}

impl<T: fmt::Debug> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}
