//! The form of AWS's credentials and configuration files: sections in brackets, names and values
//! with `=` between them, and values that are names and values of their own, indented.

use zeroize::Zeroizing;

/// A file of this form. Some values are secrets, so all are treated like that.
pub(super) struct Ini(Vec<(String, Vec<Entry>)>);

struct Entry {
    /// Of an indented line, that of the line it belongs to as well: `s3.endpoint_url`.
    name: String,
    value: Zeroizing<String>,
}

impl Ini {
    /// Reads all that has this form; other lines mean nothing.
    pub(super) fn parse(text: &str) -> Self {
        let mut sections: Vec<(String, Vec<Entry>)> = Vec::new();
        // The name of a line without a value, to which the indented lines behind it belong.
        let mut outer: Option<String> = None;
        for line in text.lines() {
            let is_indented = line.starts_with([' ', '\t']);
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(section) = line.strip_prefix('[') {
                let name = section.split(']').next().unwrap_or_default();
                let words: Vec<&str> = name.split_whitespace().collect();
                sections.push((words.join(" "), Vec::new()));
                outer = None;
                continue;
            }
            let (Some((name, value)), Some((_, entries))) =
                (line.split_once('='), sections.last_mut())
            else {
                continue;
            };
            let (name, value) = (name.trim(), value.trim());
            let name = match &outer {
                Some(outer) if is_indented => format!("{outer}.{name}"),
                _ => {
                    outer = value.is_empty().then(|| name.to_owned());
                    name.to_owned()
                }
            };
            let value = Zeroizing::new(value.to_owned());
            entries.push(Entry { name, value });
        }
        Self(sections)
    }

    /// Whether there is such a section.
    pub(super) fn has(&self, section: &str) -> bool {
        self.0.iter().any(|(name, _)| name == section)
    }

    /// A value that is not empty; the last one counts.
    pub(super) fn value(&self, section: &str, name: &str) -> Option<&str> {
        let of_section = self.0.iter().rev().filter(|(found, _)| found == section);
        let mut entries = of_section.flat_map(|(_, entries)| entries.iter().rev());
        let found = entries.find(|entry| entry.name == name)?;
        Some(found.value.as_str()).filter(|value| !value.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_names_and_values() {
        let ini = Ini::parse(
            "lost = 1\n# no\n[default]\na = 1 = 2\na=3\n;a = 4\nempty =\n[ profile  x ] # no\n\
             s3 =\n  endpoint_url = https://h\n\tother = 5\nb = 6\n  c = 7\nnonsense\n",
        );
        assert_eq!(ini.value("default", "a"), Some("3"));
        assert_eq!(ini.value("default", "empty"), None);
        assert_eq!(ini.value("default", "lost"), None);
        assert_eq!(ini.value("profile x", "s3.endpoint_url"), Some("https://h"));
        assert_eq!(ini.value("profile x", "s3.other"), Some("5"));
        assert_eq!(ini.value("profile x", "b"), Some("6"));
        assert_eq!(ini.value("profile x", "c"), Some("7"));
        assert!(ini.has("profile x") && !ini.has("x"));
    }
}
