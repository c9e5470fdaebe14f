//! The status page: one look at three in the morning. Rendered here, readable without scripts, the same on every replica.
//!
//! Invariants:
//! - It is made of what is in memory; each part from elsewhere says how old it is.
//! - Text is escaped by the template. Nothing of money, merchants or receivers' bodies is on it: units and payouts are shown
//!   by their ids and keys, errors by their class.
//! - The policy that goes with it lets nothing be loaded but what it brings along.

mod data;
mod parts;

use std::sync::OnceLock;

use data_encoding::BASE64;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

pub use data::{Aged, Details, ElectionLine, NextTick, Page};

const STYLE: &str = include_str!("../page.css");
const SCRIPT: &str = include_str!("../page.js");

/// The Content-Security-Policy of the page: its own style and script by their hashes, and questions to itself. The empty icon keeps browsers from asking for one.
pub(super) fn policy() -> &'static str {
    static POLICY: OnceLock<String> = OnceLock::new();
    POLICY.get_or_init(|| {
        let hash = |text: &str| format!("'sha256-{}'", BASE64.encode(&Sha256::digest(text)));
        format!(
            "default-src 'none'; style-src {}; script-src {}; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'",
            hash(STYLE),
            hash(SCRIPT)
        )
    })
}

/// The page.
pub(super) fn render(page: &Page) -> String {
    let head = html! {
        meta charset="utf-8";
        meta name="viewport" content="width=device-width, initial-scale=1";
        title { "bursar: " (page.replica) }
        link rel="icon" href="data:,";
        style { (PreEscaped(STYLE)) }
    };
    let body = html! {
        a.skip href="#main" { "to the content" }
        header {
            h1 { "bursar" }
            p { "replica " code { (page.replica) } " on " (page.host) ", version " (page.version) }
            p.quiet { "made at " (parts::time(page.made_at)) " by its clock; what came from elsewhere says how old it was then" }
            p #away .bad role="status" hidden { "This replica does not answer any more; what is shown is old." }
        }
        (content(page))
        footer {
            p.quiet { a href="/status.json" { "status.json" } ", " a href="/metrics" { "metrics" } }
        }
        script { (PreEscaped(SCRIPT)) }
    };
    html! { (DOCTYPE) html lang="en" { head { (head) } body { (body) } } }.into_string()
}

fn content(page: &Page) -> Markup {
    html! {
        main #main {
            (parts::readiness(page))
            (parts::elections(page))
            (parts::replicas(page))
            (parts::jobs(page))
            (parts::runs(page))
            (parts::trouble(page))
        }
    }
}

#[cfg(test)]
mod tests;
