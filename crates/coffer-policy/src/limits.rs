//! Every limit of policies and of access control lists.

/// Longest policy, white space between its parts not counted, in bytes: AWS's 20 KB.
pub const POLICY_BYTES: usize = 20 * 1024;

/// Longest text of a policy that is looked at, white space and all, in bytes. What is stored of
/// the longest policy stays below it.
pub const TEXT_BYTES: usize = 4 * POLICY_BYTES;

/// How deep JSON is nested in a policy: the policy, its statements, one of them, its conditions,
/// an operator, the list of a key's values.
pub const DEPTH: usize = 6;

/// Most fields of one object of JSON. Each new one is compared with those before.
pub const FIELDS: usize = 128;

/// Most characters of a number with a point or an exponent, as written in full.
pub const NUMBER_CHARS: usize = 16;

/// Most statements of a policy. Its length allows fewer than that: the shortest takes 60 bytes.
pub const STATEMENTS: usize = 512;

/// Longest pattern of a resource, an action or a condition's value, in bytes. Matching one takes
/// about as long as the two are, and where it has `?` between two `*`, at most a 64th of their
/// product.
pub const PATTERN_BYTES: usize = 2 * 1024;

/// Longest text that is compared with a pattern that has `?` between two `*`, in bytes: longer than
/// any name of an object. Of longer ones, as a request's headers may hold, it is not known whether
/// they match: thousands of such patterns would hold up every request.
pub const SEARCHED_BYTES: usize = 2 * 1024;

/// How much of an unknown name an error repeats, in characters.
pub const QUOTED_CHARS: usize = 64;

/// Digits of an account's id.
pub const ACCOUNT_DIGITS: usize = 12;

/// Shortest id of a subject, in letters and digits, so that no account's id is one.
pub const SUBJECT_ID_MIN_CHARS: usize = 16;

/// Longest id of a subject, in letters and digits.
pub const SUBJECT_ID_MAX_CHARS: usize = 128;

/// Most digits of a number, before the point.
pub const WHOLE_DIGITS: usize = 18;

/// Most digits of a number, after the point.
pub const FRACTION_DIGITS: usize = 9;

/// A range of IPv4 addresses with a shorter prefix is as good as all of them, in bits.
pub const PUBLIC_IPV4_PREFIX_BITS: u8 = 8;

/// A range of IPv6 addresses with a shorter prefix is as good as all of them, in bits.
pub const PUBLIC_IPV6_PREFIX_BITS: u8 = 32;

/// Most grants of an access control list.
pub const GRANTS: usize = 100;

const _: () = assert!(
    SUBJECT_ID_MIN_CHARS > ACCOUNT_DIGITS,
    "an account's id is never taken for a subject's"
);
