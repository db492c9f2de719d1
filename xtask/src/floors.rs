//! The floors: a crate may depend only on crates of lower floors.

use toml::{Table, Value};

use crate::finding::Finding;

/// Every crate of the house and its floor. A new crate gets its floor here.
pub const FLOORS: [(&str, u8); 13] = [
    ("coffer-seal", 0),
    ("coffer-label", 0),
    ("coffer-durable", 0),
    ("coffer-policy", 0),
    ("coffer-keys", 1),
    ("coffer-store", 1),
    ("coffer-audit", 1),
    ("coffer-client", 1),
    ("coffer-replica", 1),
    ("coffer-vault", 2),
    ("coffer-s3", 3),
    ("coffer-admin", 3),
    ("coffer", 4),
];

/// Beside the house: they may see all, and nothing of the house sees them.
pub const ASIDE: [&str; 7] = [
    "coffer-measure",
    "coffer-lab",
    "coffer-bench",
    "coffer-faults",
    "coffer-fuzz",
    "coffer-model",
    "xtask",
];

/// Checks one manifest: `path` for the report, `text` its TOML.
pub fn check_manifest(path: &str, text: &str) -> Vec<Finding> {
    let table: Table = match text.parse() {
        Ok(table) => table,
        Err(error) => return vec![Finding::new(path, 0, format!("no TOML: {error}"))],
    };
    let Some(name) = table
        .get("package")
        .and_then(|p| p.get("name"))
        .and_then(Value::as_str)
    else {
        return vec![Finding::new(path, 0, "has no package name")];
    };
    let floor = floor_of(name);
    if floor.is_none() && !ASIDE.contains(&name) {
        let message = format!("`{name}` has no floor: give it one in xtask/src/floors.rs");
        return vec![Finding::new(path, 0, message)];
    }
    dependencies(&table)
        .iter()
        .filter_map(|dependency| broken(name, floor, dependency))
        .map(|message| Finding::new(path, 0, message))
        .collect()
}

fn floor_of(name: &str) -> Option<u8> {
    FLOORS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|&(_, floor)| floor)
}

/// What is wrong with `name` depending on `dependency`, if anything is. Crates aside have no floor.
fn broken(name: &str, floor: Option<u8>, dependency: &str) -> Option<String> {
    // What stands aside may share what it measures with.
    let own = floor?;
    if ASIDE.contains(&dependency) {
        return Some(format!(
            "depends on `{dependency}`, which stands aside: nothing of the house may see it"
        ));
    }
    let below = floor_of(dependency)?;
    (below >= own).then(|| {
        format!(
            "`{name}` (floor {own}) depends on `{dependency}` (floor {below}): only lower floors \
             may be used, so that no circle can form"
        )
    })
}

/// Names of all dependencies of any kind, also of those for one target only.
fn dependencies(table: &Table) -> Vec<String> {
    let mut found = Vec::new();
    for (key, value) in table {
        let Some(inner) = value.as_table() else {
            continue;
        };
        if ["dependencies", "dev-dependencies", "build-dependencies"].contains(&key.as_str()) {
            found.extend(inner.iter().map(|(alias, value)| {
                let renamed = value.get("package").and_then(Value::as_str);
                renamed.unwrap_or(alias).to_owned()
            }));
        } else if key == "target" {
            found.extend(
                inner
                    .values()
                    .filter_map(Value::as_table)
                    .flat_map(dependencies),
            );
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(manifest: &str) -> Vec<String> {
        check_manifest("Cargo.toml", manifest)
            .iter()
            .map(Finding::to_string)
            .collect()
    }

    #[test]
    fn lower_floors_are_allowed() {
        let manifest = "[package]\nname = 'coffer-vault'\n[dependencies]\n\
                        coffer-seal.workspace = true\ntokio = '1'\n\
                        [dev-dependencies]\ncoffer-store.workspace = true";
        assert_eq!(findings(manifest), Vec::<String>::new());
    }

    #[test]
    fn same_and_higher_floors_are_not() {
        for section in [
            "dependencies",
            "dev-dependencies",
            "build-dependencies",
            "target.'cfg(unix)'.dependencies",
        ] {
            for dependency in [
                "coffer-keys.workspace = true",
                "k = {package = 'coffer-s3'}",
            ] {
                let manifest =
                    format!("[package]\nname = 'coffer-store'\n[{section}]\n{dependency}");
                assert_eq!(findings(&manifest).len(), 1, "{manifest}");
            }
        }
    }

    #[test]
    fn the_house_does_not_see_what_stands_aside() {
        for aside in ASIDE {
            let manifest = format!("[package]\nname = 'coffer'\n[dependencies]\n{aside} = '1'");
            assert_eq!(findings(&manifest).len(), 1, "{manifest}");
        }
    }

    #[test]
    fn a_crate_needs_a_floor() {
        assert_eq!(findings("[package]\nname = 'coffer-attic'").len(), 1);
        assert_eq!(
            findings("[package]\nname = 'xtask'\n[dependencies]\ntoml = '1'").len(),
            0
        );
    }
}
