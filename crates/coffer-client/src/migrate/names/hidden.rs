//! Names at the source that nothing is known of: of folders that can't be read, of links that are
//! not followed. What came from below one of them is not gone.

use std::collections::BTreeSet;

/// Those that may still hide names to come.
#[derive(Debug, Default)]
pub(in crate::migrate) struct Hidden {
    names: BTreeSet<String>,
}

impl Hidden {
    /// Nothing is known of this name, and of those below it. An empty one hides all.
    pub(in crate::migrate) fn add(&mut self, name: String) {
        self.names.insert(name);
    }

    /// This name hides nothing any more.
    pub(in crate::migrate) fn remove(&mut self, name: &str) {
        self.names.remove(name);
    }

    /// Whether a name is hidden.
    pub(in crate::migrate) fn covers(&mut self, key: &str) -> bool {
        self.over(key).is_some()
    }

    /// What hides a name: itself, or one that ends before one of its slashes. Names are asked for
    /// in the order of their bytes: what hides none that come later is forgotten.
    pub(in crate::migrate) fn over<'a>(&mut self, key: &'a str) -> Option<&'a str> {
        while let Some(first) = self.names.first()
            && is_past(first, key)
        {
            self.names.pop_first();
        }
        let above = key.match_indices('/').map(|(at, _)| &key[..at]);
        if self.names.is_empty() {
            return None;
        }
        let mut over = ["", key].into_iter().chain(above);
        over.find(|it| self.names.contains(*it))
    }
}

/// Whether a key sorts behind all that lies below a name: behind its slash, that is.
fn is_past(name: &str, key: &str) -> bool {
    let behind = |rest: &str| rest.bytes().next().is_some_and(|byte| byte > b'/');
    !name.is_empty() && key > name && key.strip_prefix(name).is_none_or(behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_hides_what_is_below_it_alone() {
        let mut hidden = Hidden::default();
        hidden.add("d".to_owned());
        let seen: Vec<_> = { ["c", "d", "d-x", "d/", "d/e", "d0", "e"].into_iter() }
            .filter(|key| hidden.covers(key))
            .collect();
        assert_eq!(seen, ["d", "d/", "d/e"]);
        assert!(hidden.names.is_empty());
        hidden.add(String::new());
        assert!(hidden.covers("a") && hidden.covers("z"));
    }

    fn is_at_or_below(name: &str, key: &str) -> bool {
        let rest = key.strip_prefix(name);
        name.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    #[test]
    fn many_take_no_longer_each() {
        let names: Vec<String> = (100_000..200_000)
            .map(|number| number.to_string())
            .collect();
        let mut hidden = Hidden::default();
        names.iter().for_each(|name| hidden.add(name.clone()));
        let begun = std::time::Instant::now();
        assert!(names.iter().all(|name| hidden.covers(name)));
        // Each held against each takes minutes.
        assert!(begun.elapsed() < std::time::Duration::from_secs(10));
    }

    #[test]
    fn nothing_is_forgotten_too_early() {
        let signs = ["", "-", "/", "0", "a"];
        let mut keys: Vec<String> = Vec::new();
        for (one, two, three) in triples(&signs) {
            keys.push(format!("a{one}{two}{three}"));
        }
        keys.sort();
        for name in &keys {
            let mut hidden = Hidden {
                names: BTreeSet::from([name.clone()]),
            };
            for key in &keys {
                assert_eq!(
                    hidden.covers(key),
                    is_at_or_below(name, key),
                    "{name} {key}"
                );
            }
        }
    }

    fn triples<'a>(of: &'a [&'a str]) -> impl Iterator<Item = (&'a str, &'a str, &'a str)> {
        let pairs = of
            .iter()
            .flat_map(|one| of.iter().map(move |two| (*one, *two)));
        pairs.flat_map(|(one, two)| of.iter().map(move |three| (one, two, *three)))
    }
}
