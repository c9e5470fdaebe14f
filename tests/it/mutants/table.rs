//! All mutants: what each breaks, which guarantee that would cost, the test that catches it, and words of its failure.
//!
//! The guarantees are those of ARCHITECTURE.md. One test catches each, chosen for being quick; [`Mutant::also`] names others
//! that notice it, in the model and in the simulator.

mod leading;
mod settling;

/// What ARCHITECTURE.md promises.
pub const GUARANTEES: &[&str] = &["S1", "S2", "S3", "S4", "S5", "S6", "S7", "L1", "L2", "L3", "L4"];

/// A test, as its binary names it.
#[derive(Debug, Clone, Copy)]
pub enum Test {
    /// Of the library's own.
    Unit(&'static str),
    /// Of the integration tests.
    It(&'static str),
    /// Of the model: with the mutant on, or, where it lies in what is modelled, with the same defect in the model.
    Model(&'static str),
    /// Of the simulator: with the mutant on, or, where it lies in a real store, with the same defect in the simulated one.
    Sim(&'static str),
}

/// A deliberate defect.
#[derive(Debug, Clone, Copy)]
pub struct Mutant {
    /// As it is switched on.
    pub name: &'static str,
    /// What is wrong with it on.
    pub broken: &'static str,
    /// The guarantees that this would cost, separated by spaces.
    pub holds: &'static str,
    /// The test that has to fail.
    pub caught_by: Test,
    /// Words of its failure: that it was caught for this and nothing else.
    pub says: &'static str,
    /// Others that notice it.
    pub also: &'static [Test],
}

impl Mutant {
    /// All tests that notice it.
    pub fn noticed_by(&self) -> impl Iterator<Item = &Test> {
        std::iter::once(&self.caught_by).chain(self.also)
    }

    const fn and(self, also: &'static [Test]) -> Self {
        Self { also, ..self }
    }
}

const fn row(
    name: &'static str,
    holds: &'static str,
    broken: &'static str,
    caught_by: Test,
    says: &'static str,
) -> Mutant {
    Mutant { name, broken, holds, caught_by, says, also: &[] }
}

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Mutant> {
    leading::ROWS.iter().chain(settling::ROWS)
}
