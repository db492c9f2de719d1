//! Rust text without its comments, strings and characters.
//!
//! The checks work on text, not on a parsed tree: what they look for (braces, `crate::`, `fn`) is
//! plain once nothing quoted can be mistaken for it.

/// Returns `source` with the inside of every comment, string and character literal replaced by
/// spaces. Line breaks stay, so that line numbers hold.
pub fn code_only(source: &str) -> String {
    let text: Vec<char> = source.chars().collect();
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    while at < text.len() {
        let end = quoted_end(&text, at);
        if end > at {
            out.extend(
                text[at..end]
                    .iter()
                    .map(|&c| if c == '\n' { '\n' } else { ' ' }),
            );
            at = end;
        } else {
            out.push(text[at]);
            at += 1;
        }
    }
    out
}

/// Where the comment or literal that begins at `at` ends; `at` itself if none begins here.
fn quoted_end(text: &[char], at: usize) -> usize {
    let here = &text[at..];
    match here {
        ['/', '/', ..] => at + here.iter().position(|&c| c == '\n').unwrap_or(here.len()),
        ['/', '*', ..] => block_comment_end(text, at),
        ['"', ..] => string_end(text, at + 1),
        ['r', '"' | '#', ..] | ['b' | 'c', 'r', '"' | '#', ..] if !continues_word(text, at) => {
            raw_string_end(text, at)
        }
        ['b' | 'c', '"', ..] if !continues_word(text, at) => string_end(text, at + 2),
        ['\'', '\\', ..] => {
            at + 3
                + here
                    .iter()
                    .skip(3)
                    .position(|&c| c == '\'')
                    .map_or(0, |found| found + 1)
        }
        ['\'', _, '\'', ..] => at + 3,
        _ => at,
    }
}

fn continues_word(text: &[char], at: usize) -> bool {
    at > 0 && (text[at - 1].is_alphanumeric() || text[at - 1] == '_')
}

fn block_comment_end(text: &[char], start: usize) -> usize {
    let mut depth = 0;
    let mut at = start;
    while at < text.len() {
        match &text[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// `at` is just behind the opening quotation mark.
fn string_end(text: &[char], mut at: usize) -> usize {
    while at < text.len() {
        match text[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// `start` is at the `r`, or at a `b` or `c` before it. A raw identifier (`r#type`) is none.
fn raw_string_end(text: &[char], start: usize) -> usize {
    let after_r = start + if text[start] == 'r' { 1 } else { 2 };
    let hashes = text[after_r..].iter().take_while(|&&c| c == '#').count();
    let open = after_r + hashes;
    if text.get(open) != Some(&'"') {
        return start;
    }
    let mut at = open + 1;
    while at < text.len() {
        let closes = text[at] == '"'
            && text[at + 1..]
                .iter()
                .take(hashes)
                .filter(|&&c| c == '#')
                .count()
                == hashes;
        if closes {
            return at + 1 + hashes;
        }
        at += 1;
    }
    text.len()
}

/// A word, or a single other character that is not white space, and its line counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) line: usize,
}

/// Splits what [`code_only`] returned.
pub(crate) fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let length = if is_word(first) {
                rest.find(|c| !is_word(c)).unwrap_or(rest.len())
            } else {
                first.len_utf8()
            };
            found.push(Token {
                text: &rest[..length],
                line: index + 1,
            });
            rest = rest[length..].trim_start();
        }
    }
    found
}

/// Index of the token that closes the bracket which `open` holds; the last one if none does.
pub(crate) fn closing(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
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

/// The tokens without modules and items that are compiled for tests only.
pub(crate) fn without_tests<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        if is_test_attribute(&tokens[at..]) {
            at = item_end(tokens, at + TEST_ATTRIBUTE.len());
        } else {
            kept.push(tokens[at]);
            at += 1;
        }
    }
    kept
}

const TEST_ATTRIBUTE: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];

fn is_test_attribute(tokens: &[Token<'_>]) -> bool {
    tokens.len() >= TEST_ATTRIBUTE.len()
        && tokens
            .iter()
            .zip(TEST_ATTRIBUTE)
            .all(|(token, expected)| token.text == expected)
}

/// The index behind the item that begins at `start`: behind its `;` or its braces.
fn item_end(tokens: &[Token<'_>], start: usize) -> usize {
    let mut at = start;
    while at < tokens.len() {
        match tokens[at].text {
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

    #[test]
    fn quoted_things_become_spaces() {
        let source = concat!(
            "a // crate::x\n",
            "b /* { /* nested */ } */ c\n",
            "\"str \\\" {\" d r#\"raw \" { \"# e b\"{\" '{' '\\'' '\\u{7f}' f\n",
            "fn g<'a>(x: &'a str, r#type: u8) {}\n",
        );
        let words: Vec<String> = tokens(&code_only(source))
            .iter()
            .map(|token| token.text.to_owned())
            .collect();
        let expected = "a b c d e f fn g < ' a > ( x : & ' a str , r # type : u8 ) { }";
        assert_eq!(words.join(" "), expected);
        assert_eq!(code_only(source).lines().count(), source.lines().count());
    }

    #[test]
    fn test_modules_are_left_out() {
        let code = "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { let x = [1; 2]; } }\nfn c() {}";
        let words: Vec<&str> = without_tests(&tokens(code))
            .iter()
            .map(|token| token.text)
            .collect();
        assert_eq!(words.join(" "), "fn a ( ) { } fn c ( ) { }");
    }
}
