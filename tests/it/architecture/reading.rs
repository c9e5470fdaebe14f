//! Reads the repository's files and as much of Rust as the rules need: tokens, paths, and what is there for tests alone.

use std::fs;
use std::path::{Path, PathBuf};

/// Words that begin an item, as opposed to a variant, a field or an arm.
const ITEMS: &[&str] =
    &["pub", "mod", "fn", "impl", "use", "struct", "enum", "trait", "type", "const", "static", "async", "macro_rules"];

/// A source file: its module's path, and its text.
pub struct Source {
    /// Below the repository's root.
    pub path: String,
    /// Its module's path; empty for the crate's root and the binary.
    pub module: Vec<String>,
    /// Its text.
    pub text: String,
}

impl Source {
    /// The source of that file.
    pub fn new(path: &str, text: &str) -> Self {
        let inner = path.trim_start_matches("src/").trim_end_matches(".rs").trim_end_matches("/mod");
        let module =
            if matches!(inner, "lib" | "main") { Vec::new() } else { inner.split('/').map(str::to_owned).collect() };
        Self { path: path.to_owned(), module, text: text.to_owned() }
    }
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files below a folder of the repository, built ones and git's own left out.
pub fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is there").map(|entry| entry.expect("it can be read")) {
        let (path, name) = (entry.path(), entry.file_name());
        if name == "target" || name == ".git" {
            continue;
        }
        if entry.file_type().expect("it can be read").is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

pub fn repository() -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    files(root(), &mut found);
    let relative = |path: &Path| path.strip_prefix(root()).expect("it is below").to_string_lossy().into_owned();
    found.into_iter().map(|path| (relative(&path), path)).collect()
}

pub fn has_extension(path: &str, wanted: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension.eq_ignore_ascii_case(wanted))
}

/// All sources.
pub fn all_sources() -> Vec<Source> {
    let rust = repository().into_iter().filter(|(name, _)| name.starts_with("src/") && has_extension(name, "rs"));
    let sources: Vec<Source> =
        rust.map(|(name, path)| Source::new(&name, &fs::read_to_string(path).expect("sources are UTF-8"))).collect();
    assert!(sources.len() > 20, "the walk finds the sources");
    sources
}

/// All sources that are of the product: those that are declared as modules of tests alone are left out.
pub fn sources() -> Vec<Source> {
    let sources = all_sources();
    let tests: Vec<String> = sources.iter().flat_map(test_files).collect();
    let is_test =
        |path: &str| tests.iter().any(|test| path == format!("{test}.rs") || path.starts_with(&format!("{test}/")));
    sources.into_iter().filter(|source| !is_test(&source.path)).collect()
}

/// The files, without their ending, that a source declares as modules of tests alone; what lies in a folder of that name
/// is of tests too.
pub fn test_files(source: &Source) -> Vec<String> {
    let mark = tokens("#[cfg(test)]");
    let all = tokens(&source.text);
    let folder = source.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let own = source.path.trim_end_matches(".rs").trim_end_matches("/mod");
    let mut found = Vec::new();
    for at in (0..all.len()).filter(|at| all[*at..].starts_with(&mark)) {
        let (mut rest, mut named) = (&all[at + mark.len()..], None);
        // Further attributes, one of which may name the file; then how visible the module is.
        while let [Token::Sign('#'), tail @ ..] = rest {
            let end = tail.iter().position(|token| *token == Token::Sign(']')).map_or(tail.len(), |end| end + 1);
            if let [Token::Sign('['), Token::Word(path), Token::Sign('='), Token::Text(file), ..] = tail
                && path == "path"
            {
                named = Some(format!("{folder}/{}", file.trim_end_matches(".rs")));
            }
            rest = &tail[end..];
        }
        let start = rest.iter().position(|token| *token == Token::Word("mod".to_owned())).unwrap_or(rest.len());
        let visibility = |token: &Token| match token {
            Token::Word(word) => ["pub", "super", "crate", "in"].contains(&word.as_str()),
            Token::Sign(sign) => ['(', ')'].contains(sign),
            Token::Text(_) | Token::Path => false,
        };
        if let [Token::Word(_), Token::Word(name), Token::Sign(';'), ..] = &rest[start..]
            && rest[..start].iter().all(visibility)
        {
            found.push(named.unwrap_or_else(|| format!("{own}/{name}")));
        }
    }
    found
}

/// A piece of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// A name or a number.
    Word(String),
    /// A text literal's content.
    Text(String),
    /// `::`.
    Path,
    /// Any other sign.
    Sign(char),
}

/// Splits a source; comments are left out. It knows as much of Rust as is needed not to mistake one thing for another.
pub fn tokens(text: &str) -> Vec<Token> {
    let signs: Vec<char> = text.chars().collect();
    let (mut tokens, mut at) = (Vec::new(), 0);
    while at < signs.len() {
        let rest = &signs[at..];
        match rest {
            ['/', '/', ..] => at += rest.iter().position(|sign| *sign == '\n').unwrap_or(rest.len()),
            ['/', '*', ..] => {
                at += rest.windows(2).skip(2).position(|two| two == ['*', '/']).map_or(rest.len(), |end| end + 4);
            }
            ['r', '"', ..] | ['r', '#', '"' | '#', ..] => {
                let hashes = rest[1..].iter().take_while(|sign| **sign == '#').count();
                let end: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
                let body = &rest[hashes + 2..];
                let length = body.windows(end.len()).position(|window| window == end).unwrap_or(body.len());
                tokens.push(Token::Text(body[..length].iter().collect()));
                at += hashes + 2 + length + end.len();
            }
            ['"', body @ ..] => {
                let mut length = 0;
                while length < body.len() && body[length] != '"' {
                    length += if body[length] == '\\' { 2 } else { 1 };
                }
                tokens.push(Token::Text(body[..length.min(body.len())].iter().collect()));
                at += length + 2;
            }
            // A character, not a lifetime.
            ['\'', '\\', _, tail @ ..] => {
                at += 3 + tail.iter().position(|sign| *sign == '\'').unwrap_or(tail.len()) + 1;
            }
            ['\'', _, '\'', ..] => at += 3,
            [':', ':', ..] => {
                tokens.push(Token::Path);
                at += 2;
            }
            [sign, ..] if sign.is_alphanumeric() || *sign == '_' => {
                let length = rest.iter().take_while(|sign| sign.is_alphanumeric() || **sign == '_').count();
                tokens.push(Token::Word(rest[..length].iter().collect()));
                at += length;
            }
            [sign, ..] => {
                if !sign.is_whitespace() {
                    tokens.push(Token::Sign(*sign));
                }
                at += 1;
            }
            [] => {}
        }
    }
    tokens
}

/// The tokens without `#[cfg(test)]` items that have a body, and their tests.
pub fn product(source: &Source) -> Vec<Token> {
    let mark = tokens("#[cfg(test)]");
    let all = tokens(&source.text);
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < all.len() {
        if !all[at..].starts_with(&mark) {
            kept.push(all[at].clone());
            at += 1;
            continue;
        }
        at += mark.len();
        let is_item = matches!(all.get(at), Some(Token::Word(word)) if ITEMS.contains(&word.as_str()));
        let mut depth = 0_usize;
        while at < all.len() {
            match &all[at] {
                Token::Sign('{' | '(' | '[') => depth += 1,
                // The end of what the item stands in.
                Token::Sign('}') if depth == 0 => break,
                Token::Sign('}' | ')' | ']') => depth = depth.saturating_sub(1),
                Token::Sign(_) | Token::Word(_) | Token::Text(_) | Token::Path => {}
            }
            let last = matches!(&all[at], Token::Sign('}' | ';')) || (!is_item && all[at] == Token::Sign(','));
            at += 1;
            if depth == 0 && last {
                break;
            }
        }
    }
    kept
}

/// All paths that start with a word, groups written out: `a::{b, c::d}` gives `a::b` and `a::c::d`.
pub fn paths(tokens: &[Token]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let continues = at > 0 && matches!(tokens[at - 1], Token::Path | Token::Sign('.'));
        if let Token::Word(word) = token
            && !continues
            && tokens.get(at + 1) == Some(&Token::Path)
        {
            branch(tokens, at + 2, std::slice::from_ref(word), &mut found);
        }
    }
    found
}

/// Reads what follows a `::`; gives where it ends.
pub fn branch(tokens: &[Token], at: usize, before: &[String], found: &mut Vec<Vec<String>>) -> usize {
    match tokens.get(at) {
        Some(Token::Word(word)) => {
            let path: Vec<String> = before.iter().chain([word]).cloned().collect();
            if tokens.get(at + 1) == Some(&Token::Path) {
                return branch(tokens, at + 2, &path, found);
            }
            found.push(path);
            at + 1
        }
        Some(Token::Sign('{')) => {
            let mut at = at + 1;
            while at < tokens.len() && tokens[at] != Token::Sign('}') {
                let next = branch(tokens, at, before, found);
                at = next.max(at + 1);
                // `as name`, and the comma.
                while at < tokens.len() && !matches!(tokens[at], Token::Sign(',' | '}')) {
                    at += 1;
                }
                if tokens.get(at) == Some(&Token::Sign(',')) {
                    at += 1;
                }
            }
            at + 1
        }
        // `::<T>`, `::*`: the path before counts.
        Some(Token::Sign(_) | Token::Text(_) | Token::Path) | None => {
            found.push(before.to_vec());
            at
        }
    }
}
