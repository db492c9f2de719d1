//! Rust text as tokens, read by `proc_macro2`, the lexer of `syn`.
//!
//! The checks look for plain things (braces, `crate::`, `fn`) and so for tokens: they are found
//! inside macros, too, where a syntax tree ends.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};

/// A word, a number or a single other character outside of comments and quotation marks, and its
/// line counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// The tokens of `source`, those of its documentation left out.
///
/// # Panics
///
/// Where `source` is no Rust, with `path`.
pub(crate) fn tokens(path: &str, source: &str) -> Vec<Token> {
    let stream: TokenStream = source
        .parse()
        .unwrap_or_else(|error| panic!("{path} can't be read as Rust: {error}"));
    let mut found = Vec::new();
    collect(stream, &mut found);
    found
}

fn collect(stream: TokenStream, found: &mut Vec<Token>) {
    for tree in stream {
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                push(found, open, group.span_open());
                collect(group.stream(), found);
                push(found, close, group.span_close());
            }
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                if text.starts_with(|c: char| c.is_ascii_digit()) {
                    push(found, &text, literal.span());
                }
            }
            TokenTree::Ident(word) => {
                let text = word.to_string();
                push(found, text.trim_start_matches("r#"), word.span());
            }
            TokenTree::Punct(mark) => push(found, &mark.as_char().to_string(), mark.span()),
        }
    }
}

fn push(found: &mut Vec<Token>, text: &str, span: Span) {
    found.push(Token {
        text: text.to_owned(),
        line: span.start().line,
    });
}

/// Index of the token that closes the bracket which `open` holds; the last one if none does.
pub(crate) fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return index;
        }
    }
    tokens.len().saturating_sub(1)
}

/// Whether `tokens` begin with `expected`.
pub(crate) fn begins(tokens: &[Token], expected: &[&str]) -> bool {
    tokens.len() >= expected.len()
        && tokens
            .iter()
            .zip(expected)
            .all(|(token, expected)| token.text == *expected)
}

/// The tokens without modules and items that are compiled for tests only.
pub(crate) fn without_tests(tokens: &[Token]) -> Vec<Token> {
    const TEST_ATTRIBUTE: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        if begins(&tokens[at..], &TEST_ATTRIBUTE) {
            at = item_end(tokens, at + TEST_ATTRIBUTE.len());
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// The index behind the item that begins at `start`: behind its `;` or its braces.
fn item_end(tokens: &[Token], start: usize) -> usize {
    let mut at = start;
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            ";" => return at + 1,
            "{" => return closing(tokens, at) + 1,
            "(" | "[" => at = closing(tokens, at) + 1,
            _ => at += 1,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(tokens: &[Token]) -> String {
        let words: Vec<&str> = tokens.iter().map(|token| token.text.as_str()).collect();
        words.join(" ")
    }

    #[test]
    fn quoted_things_are_left_out() {
        let source = concat!(
            "a // crate::x\n",
            "b /* { /* nested */ } */ c\n",
            "\"str \\\" {\" d r#\"raw \" { \"# e b\"{\" '{' '\\'' '\\u{7f}' f\n",
            "fn g<'a>(x: &'a str, r#type: u8) {}\n",
        );
        let found = tokens("x.rs", source);
        let expected = "a b c d e f fn g < ' a > ( x : & ' a str , type : u8 ) { }";
        assert_eq!(joined(&found), expected);
        assert_eq!(found.last().map(|token| token.line), Some(4));
    }

    #[test]
    fn test_modules_are_left_out() {
        let code = "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { let x = [1; 2]; } }\nfn c() {}";
        let kept = without_tests(&tokens("x.rs", code));
        assert_eq!(joined(&kept), "fn a ( ) { } fn c ( ) { }");
    }
}
