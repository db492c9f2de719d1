//! Licences, bans and sources of all that coffer is built from, as `deny.toml` has them.

use xtask::dependencies::{Package, Policy, bans, licences, packages, sources};
use xtask::{assert_clean, workspace_root};

fn policy() -> Policy {
    let text = std::fs::read_to_string(workspace_root().join("deny.toml")).expect("it is there");
    toml::from_str(&text).expect("it is a policy")
}

fn package(json: &str) -> Vec<Package> {
    vec![serde_json::from_str(json).expect("a package")]
}

#[test]
fn dependencies_are_allowed() {
    let packages = packages();
    assert!(packages.len() > 200, "{} are too few", packages.len());
    assert_clean(&licences(&policy(), &packages));
    assert_clean(&bans(&policy(), &packages));
    assert_clean(&sources(&packages));
}

#[test]
fn other_licences_are_found() {
    for (licence, count) in [
        ("\"MIT\"", 0),
        ("\"GPL-3.0-only OR MIT/Apache-2.0\"", 0),
        ("\"Apache-2.0 AND ISC\"", 0),
        ("\"GPL-3.0-only\"", 1),
        ("\"MIT AND MPL-2.0\"", 1),
        ("\"all rights reserved\"", 1),
        ("null", 1),
    ] {
        let json =
            format!(r#"{{"name": "a", "license": {licence}, "source": null, "dependencies": []}}"#);
        assert_eq!(
            licences(&policy(), &package(&json)).len(),
            count,
            "{licence}"
        );
    }
}

#[test]
fn banned_packages_are_found() {
    let uses = |name: &str, optional: bool| {
        let json = format!(
            r#"{{"name": "{name}", "license": null, "source": null,
                "dependencies": [{{"name": "openssl", "optional": {optional}}}]}}"#
        );
        bans(&policy(), &package(&json)).len()
    };
    assert_eq!(uses("coffer-s3", false), 1);
    assert_eq!(uses("coffer-s3", true), 0);
    assert_eq!(uses("coffer-lab", false), 0);
}

#[test]
fn other_sources_are_found() {
    let from = |source: &str| {
        let json = format!(
            r#"{{"name": "a", "license": null, "source": "{source}", "dependencies": []}}"#
        );
        package(&json)
    };
    assert_eq!(sources(&from("git+https://example.org/a")).len(), 1);
    assert_eq!(sources(&from("registry+https://example.org/a")).len(), 0);
    let mut two = from("registry+https://example.org/a");
    two.extend(from("registry+https://example.org/b"));
    assert_eq!(sources(&two).len(), 1);
}
