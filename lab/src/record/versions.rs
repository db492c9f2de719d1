//! Versions of the experiments. A person raises one when what an experiment does has changed so
//! that its older figures can't be set beside its newer ones.

/// The beginning of an experiment's id, and the version of those that begin so; the first that
/// fits.
///
/// - 2 of what is raw: where one thread works, figures are of its CPU time, and the simulated
///   processor copies without `rep movsb`; `openssl speed` has as many samples as the others.
/// - 2 of the rest under a simulated processor, for the same reason.
/// - 2 of `sendfile/`: with B's baseline. That its client has looked at the clock twice a request
///   since is no version of its own: by count it is less than what is told as a difference.
const VERSIONS: [(&str, u32); 6] = [
    ("raw/", 2),
    ("file/", 2),
    ("sendfile/", 2),
    ("net/", 2),
    ("kernel/configs/", 2),
    ("", 1),
];

/// What an experiment has where its record says nothing.
pub fn first() -> u32 {
    1
}

/// The version of what this lab does under that id.
pub fn version(id: &str) -> u32 {
    let found = VERSIONS.iter().find(|(begins, _)| id.starts_with(begins));
    found.map_or(first(), |(_, version)| *version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_the_version_of_the_first_beginning_that_fits() {
        assert_eq!(version("raw/aes-256-gcm/encrypt"), 2);
        assert_eq!(version("server/1-mb"), 1);
        assert_eq!(version("unheard-of"), 1);
    }
}
