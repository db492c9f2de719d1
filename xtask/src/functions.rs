//! How long functions are.

use crate::finding::Finding;
use crate::tokens::{Token, closing, tokens};

/// Finds functions of more than `limit_lines` lines, signature included.
pub fn long_functions(path: &str, source: &str, limit_lines: usize) -> Vec<Finding> {
    let tokens = tokens(path, source);
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        if token.text != "fn" {
            continue;
        }
        // `fn(u8) -> u8` is a type and has no name.
        let Some(name) = tokens.get(index + 1).filter(|next| next.text != "(") else {
            continue;
        };
        let Some(body) = body_start(&tokens, index) else {
            continue;
        };
        let length = tokens[closing(&tokens, body)].line + 1 - token.line;
        if length > limit_lines {
            let message = format!(
                "`{}` has {length} lines, more than {limit_lines}: give its steps names of their \
                 own",
                name.text
            );
            found.push(Finding::new(path, token.line, message));
        }
    }
    found
}

/// The index of the brace that opens the body; none where a trait only declares the function.
fn body_start(tokens: &[Token], function: usize) -> Option<usize> {
    let mut at = function;
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            "{" => return Some(at),
            ";" => return None,
            "(" | "[" => at = closing(tokens, at) + 1,
            _ => at += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_from_signature_to_brace() {
        let source = "trait T { fn declared(&self) -> [u8; 4]; }\n\
                      fn short() {}\n\
                      fn long(\n    a: fn(u8) -> u8,\n) {\n    if a(1) == 1 { \"}\"; }\n}\n";
        let found = long_functions("x.rs", source, 4);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (
                found[0].line,
                found[0].message.contains("`long` has 5 lines")
            ),
            (3, true)
        );
        assert!(long_functions("x.rs", source, 5).is_empty());
    }
}
