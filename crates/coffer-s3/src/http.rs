//! What S3 takes from HTTP: dates, percent-encoding, encoded words, ranges, conditions, hosts. What
//! S3 adds to it, the headers and parameters of its own, is in `parameters` and `checksums`.

pub(crate) mod dates;

pub(crate) mod percent;

pub(crate) mod encoded_words;

pub(crate) mod ranges;

pub(crate) mod conditions;

pub(crate) mod hosts;
