//! Names that S3 clients send by themselves when a bucket is made: no level has one, or buckets
//! would land in it that were not meant to, and out of it once it is erased.

/// The last word of every region of AWS, before its number.
const DIRECTIONS: [&str; 9] = [
    "north",
    "south",
    "east",
    "west",
    "central",
    "northeast",
    "northwest",
    "southeast",
    "southwest",
];

/// The longest word before the direction.
const AREA_MAX_CHARS: usize = 4;

/// Whether a text is shaped like a region of AWS, such as `eu-west-1`, `us-gov-east-1` or
/// `eusc-de-east-1`, or is one of the two old names, or what the aws CLI sends when it knows no
/// region.
pub fn is_region(text: &str) -> bool {
    if matches!(text, "EU" | "US" | "aws-global") {
        return true;
    }
    let is_area = |word: &&str| {
        (2..=AREA_MAX_CHARS).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_lowercase())
    };
    let is_number =
        |text: &str| matches!(text.len(), 1..=2) && text.bytes().all(|b| b.is_ascii_digit());
    match *text.split('-').collect::<Vec<_>>() {
        [ref areas @ .., direction, number] => {
            matches!(areas.len(), 1..=2)
                && areas.iter().all(is_area)
                && DIRECTIONS.contains(&direction)
                && is_number(number)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_have_their_shape() {
        for region in [
            "us-east-1",
            "eu-west-1",
            "ap-southeast-12",
            "ca-central-1",
            "cn-northwest-1",
            "us-gov-east-1",
            "us-isob-east-1",
            "eu-isoe-west-1",
            "eusc-de-east-1",
            "EU",
            "US",
            "aws-global",
        ] {
            assert!(is_region(region), "{region}");
        }
        for other in [
            "",
            "default",
            "secret",
            "eu",
            "eu-west",
            "eu-secret-1",
            "eu-1",
            "west-1",
            "e-west-1",
            "eu-West-1",
            "eu--1",
            "eu-west-",
            "eu-west-100",
            "a-tenant-of-the-west-1",
        ] {
            assert!(!is_region(other), "{other}");
        }
    }
}
