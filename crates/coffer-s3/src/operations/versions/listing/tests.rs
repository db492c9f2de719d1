//! What is written is what s3s writes of the same page, but that delete markers stand between
//! versions.

use coffer_vault::record::{ChecksumAlgorithm, ChecksumKind, ObjectName};
use coffer_vault::{ListedVersion, VersionContent};
use s3s::dto::{
    DeleteMarkerEntry, ETag, ListObjectVersionsOutput, ObjectVersion, ObjectVersionStorageClass,
    Owner,
};
use s3s::xml::{Serialize, Serializer};

use super::*;
use crate::http::dates::in_seconds;
use crate::operations::listing::{prefixes, written};

const OWNER: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

fn owners() -> Owners {
    Owners::of_bucket(Owner {
        display_name: Some("123456789012".into()),
        id: Some(OWNER.into()),
    })
}

fn version_id(id: i64, tag: Option<i64>) -> VersionId {
    match tag {
        Some(tag) => format!("{id:016x}{tag:016x}").parse().unwrap(),
        None => VersionId::Null,
    }
}

fn asked(writing: Writing) -> Asked {
    Asked {
        bucket: "films".into(),
        prefix: "a&<b>\"'\r\u{1}\n\t/é𐍈".into(),
        delimiter: Some("&/".into()),
        key_marker: "a&".into(),
        version_id_marker: "null".into(),
        rows: 1000,
        writing,
    }
}

fn listed(name: &str, id: i64, owner: Option<&str>) -> ListedVersion {
    ListedVersion {
        name: ObjectName::new(name).unwrap(),
        version: version_id(id, (id % 3 != 0).then_some(i64::MAX - id)),
        is_latest: id % 2 == 0,
        // The turn of a year, and times of few and many digits.
        modified_ms: [0, 1_767_225_599_999, 1_767_225_600_000, 951_782_400_007][id as usize % 4],
        owner: owner.map(str::to_owned),
        content: Some(VersionContent {
            size_bytes: 64 << id,
            etag: "d41d8cd98f00b204e9800998ecf8427e-1".into(),
            checksum: [
                None,
                Some((ChecksumAlgorithm::Crc64nvme, ChecksumKind::FullObject)),
                Some((ChecksumAlgorithm::Sha256, ChecksumKind::Composite)),
            ][id as usize % 3],
        }),
    }
}

fn marker(name: &str, id: i64) -> ListedVersion {
    ListedVersion {
        content: None,
        ..listed(name, id, None)
    }
}

fn page() -> VersionsPage {
    VersionsPage {
        versions: vec![
            marker("a", 9),
            listed("a", 8, None),
            listed("b\r<&>'\"\u{1f}", 7, Some("another's id & <more>")),
            listed("b/é 𐍈~*()", 6, None),
            marker("c c", 5),
            listed("c c", 4, Some("another")),
            listed("d+%", 3, None),
        ],
        prefixes: vec!["p&/".into(), "q /".into()],
        next: Some(("d+%".into(), Some(version_id(3, None)))),
    }
}

/// As s3s writes it, control characters as references.
fn by_s3s(asked: &Asked, page: &VersionsPage, owners: &Owners) -> String {
    let text = |text: &str| Some(asked.writing.write(text.to_owned()));
    let version = |row: &ListedVersion| {
        let content = row.content.clone()?;
        let (algorithm, kind) = content.checksum.unzip();
        Some(ObjectVersion {
            checksum_algorithm: algorithm.map(|algorithm| vec![written(algorithm)]),
            checksum_type: kind.map(algorithms::kind),
            e_tag: Some(ETag::Strong(content.etag)),
            is_latest: Some(row.is_latest),
            key: text(row.name.expose()),
            last_modified: Some(in_seconds(row.modified_ms)),
            owner: Some(owners.of(row.owner.clone())),
            size: i64::try_from(content.size_bytes).ok(),
            storage_class: Some(ObjectVersionStorageClass::from_static("STANDARD")),
            version_id: Some(row.version.to_string()),
            ..Default::default()
        })
    };
    let marker = |row: &ListedVersion| DeleteMarkerEntry {
        is_latest: Some(row.is_latest),
        key: text(row.name.expose()),
        last_modified: Some(in_seconds(row.modified_ms)),
        owner: Some(owners.of(row.owner.clone())),
        version_id: Some(row.version.to_string()),
    };
    let markers = { page.versions.iter() }.filter(|row| row.content.is_none());
    let (next_key, next_version) = page.next.clone().unzip();
    let output = ListObjectVersionsOutput {
        name: Some(asked.bucket.clone()),
        prefix: text(&asked.prefix),
        key_marker: text(&asked.key_marker),
        version_id_marker: Some(asked.version_id_marker.clone()),
        max_keys: Some(asked.rows),
        is_truncated: Some(next_key.is_some()),
        next_key_marker: next_key.as_deref().and_then(text),
        next_version_id_marker: next_version.flatten().map(|version| version.to_string()),
        versions: Some(page.versions.iter().filter_map(version).collect()),
        delete_markers: Some(markers.map(marker).collect()),
        common_prefixes: prefixes(page.prefixes.clone(), asked.writing),
        delimiter: asked.delimiter.as_deref().and_then(text),
        encoding_type: asked.writing.told(),
        ..Default::default()
    };
    let mut bytes = Vec::new();
    let mut serializer = Serializer::new(&mut bytes);
    serializer.decl().unwrap();
    output.serialize(&mut serializer).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let escaped = |character: char| match character {
        '\u{0}'..='\u{1f}' if !"\t\n".contains(character) => format!("&#x{:X};", character as u32),
        other => other.to_string(),
    };
    text.chars().map(escaped).collect()
}

/// Delete markers go where s3s has them.
fn markers_first(xml: &str) -> String {
    let (mut markers, mut others) = (String::new(), String::new());
    for piece in xml.split_inclusive("</DeleteMarker>") {
        match piece.split_once("<DeleteMarker>") {
            Some((before, marker)) => {
                others += before;
                markers += &format!("<DeleteMarker>{marker}");
            }
            None => others += piece,
        }
    }
    others.replacen("<Delimiter>", &format!("{markers}<Delimiter>"), 1)
}

#[test]
fn a_page_is_written_as_s3s_writes_it() {
    for writing in [Writing::Plain, Writing::Url] {
        let (asked, page) = (asked(writing), page());
        let Written(ours) = asked.answered(&page, &owners());
        let ours = std::str::from_utf8(&ours).unwrap();
        let theirs = by_s3s(&asked, &page, &owners());
        assert_eq!(markers_first(ours), theirs);
        assert_eq!(ours.matches("<DeleteMarker>").count(), 2);
        let order = ["<DeleteMarker>", "<Key>a</Key>", "<Version>"];
        let places = order.map(|part| ours.find(part).unwrap());
        assert!(places.is_sorted(), "{ours}");
    }
}

#[test]
fn an_empty_page_is_written_as_s3s_writes_it() {
    let asked = Asked {
        bucket: "films".into(),
        prefix: String::new(),
        delimiter: None,
        key_marker: String::new(),
        version_id_marker: String::new(),
        rows: 0,
        writing: Writing::Plain,
    };
    let page = VersionsPage::default();
    let Written(ours) = asked.answered(&page, &owners());
    assert_eq!(ours, by_s3s(&asked, &page, &owners()));
}

/// Rows of versions as long as they get fit into what a page reserves for them.
#[test]
fn rows_are_no_longer_than_reserved() {
    let mut row = listed("n", 1, Some(OWNER));
    row.version = version_id(i64::MAX, Some(i64::MAX));
    if let Some(content) = &mut row.content {
        content.size_bytes = i64::MAX as u64;
        content.checksum = Some((ChecksumAlgorithm::Crc64nvme, ChecksumKind::FullObject));
    }
    let asked = asked(Writing::Plain);
    let bytes = |versions| {
        let page = VersionsPage {
            versions,
            ..VersionsPage::default()
        };
        asked.answered(&page, &owners()).0.len()
    };
    let longer = bytes(vec![row]) - bytes(vec![]);
    assert!((400..PAGE_ROW_BYTES).contains(&longer), "{longer}");
}
