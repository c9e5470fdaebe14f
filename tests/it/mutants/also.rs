//! What the table says of the model and of the simulator, for those two: they hold that it is so.

#[expect(dead_code, reason = "what the integration tests hold the table to")]
mod table;

use std::collections::BTreeSet;

use self::table::{Test, all};

/// Mutants whose rows say that this test of the model's or of the simulator's notices them.
pub fn noticed_by(test: &str) -> BTreeSet<&'static str> {
    let names = |of: &Test| match of {
        Test::Model(name) | Test::Sim(name) => *name == test,
        Test::Unit(_) | Test::It(_) => false,
    };
    all().filter(|mutant| mutant.also.iter().any(names)).map(|mutant| mutant.name).collect()
}
