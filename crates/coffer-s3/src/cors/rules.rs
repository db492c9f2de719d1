//! The rules of a CORS configuration: checked when they are set, matched when a browser asks.

use http::Method;
use s3s::dto::{CORSConfiguration, CORSRule};
use s3s::{S3Result, s3_error};
use serde::{Deserialize, Serialize};

use crate::limits::{CORS_ID_MAX_CHARS, CORS_NAMES_MAX, CORS_RULE_NAMES_MAX, CORS_RULES_MAX};

const METHODS: [Method; 5] = [
    Method::GET,
    Method::PUT,
    Method::POST,
    Method::DELETE,
    Method::HEAD,
];

/// A configuration, as the vault keeps it: JSON of this shape.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rules(Vec<Rule>);

/// Origins that may use methods with headers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Rule {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// With at most one `*`, which stands for any text.
    pub(crate) origins: Vec<String>,
    pub(crate) methods: Vec<String>,
    /// Headers that a request may have, in any case; with at most one `*`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    headers: Vec<String>,
    /// Headers of an answer that a page may see.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) exposed: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_age_seconds: Option<i32>,
}

/// What a browser asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) origin: &'a str,
    pub(crate) method: &'a str,
    /// Names of headers, as they were asked for.
    pub(crate) headers: &'a [&'a str],
}

impl Rules {
    /// Checks what a client sets.
    ///
    /// # Errors
    /// As S3: `MalformedXML`, and `InvalidRequest` for what no rule may have.
    pub(crate) fn of_client(configuration: CORSConfiguration) -> S3Result<Self> {
        let rules = configuration.cors_rules;
        if rules.is_empty() || rules.len() > CORS_RULES_MAX {
            return Err(s3_error!(
                MalformedXML,
                "A CORS configuration has 1 to {CORS_RULES_MAX} rules"
            ));
        }
        let rules = rules
            .into_iter()
            .map(checked)
            .collect::<S3Result<Vec<_>>>()?;
        let names = |rule: &Rule| rule.origins.len() + rule.methods.len() + rule.headers.len();
        if rules.iter().map(names).sum::<usize>() > CORS_NAMES_MAX {
            return Err(s3_error!(
                InvalidRequest,
                "The rules of a CORS configuration have at most {CORS_NAMES_MAX} origins, methods \
                 and headers in all"
            ));
        }
        Ok(Self(rules))
    }

    /// As a client reads them.
    pub(crate) fn to_client(&self) -> Vec<CORSRule> {
        let some = |names: &Vec<String>| (!names.is_empty()).then(|| names.clone());
        let rule = |rule: &Rule| CORSRule {
            allowed_headers: some(&rule.headers),
            allowed_methods: rule.methods.clone(),
            allowed_origins: rule.origins.clone(),
            expose_headers: some(&rule.exposed),
            id: rule.id.clone(),
            max_age_seconds: rule.max_age_seconds,
        };
        self.0.iter().map(rule).collect()
    }

    /// The first rule that allows all of it.
    pub(crate) fn matching(&self, asked: Asked<'_>) -> Option<&Rule> {
        self.0.iter().find(|rule| rule.allows(asked))
    }
}

impl Rule {
    fn allows(&self, asked: Asked<'_>) -> bool {
        let has_header = |asked: &&str| {
            self.headers
                .iter()
                .any(|allowed| fits_header(allowed, asked))
        };
        self.origins.iter().any(|origin| fits(origin, asked.origin))
            && self.methods.iter().any(|method| method == asked.method)
            && asked.headers.iter().all(has_header)
    }

    /// Whether all origins are allowed, so that no page is told apart.
    pub(crate) fn is_for_all(&self) -> bool {
        self.origins.iter().any(|origin| origin == "*")
    }
}

/// Whether a text is this pattern, whose only `*` stands for any text.
fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, end)) => {
            text.len() >= start.len() + end.len() && text.starts_with(start) && text.ends_with(end)
        }
    }
}

/// The same for a header's name, in any case.
fn fits_header(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern.eq_ignore_ascii_case(name),
        Some((start, end)) => {
            let name = name.as_bytes();
            name.len() >= start.len() + end.len()
                && name[..start.len()].eq_ignore_ascii_case(start.as_bytes())
                && name[name.len() - end.len()..].eq_ignore_ascii_case(end.as_bytes())
        }
    }
}

fn checked(rule: CORSRule) -> S3Result<Rule> {
    let rule = Rule {
        id: rule.id,
        origins: rule.allowed_origins,
        methods: rule.allowed_methods,
        headers: rule.allowed_headers.unwrap_or_default(),
        exposed: rule.expose_headers.unwrap_or_default(),
        max_age_seconds: rule.max_age_seconds,
    };
    let lists = [&rule.origins, &rule.methods, &rule.headers, &rule.exposed];
    if rule.origins.is_empty() || rule.methods.is_empty() {
        return Err(s3_error!(
            MalformedXML,
            "A CORS rule has at least one AllowedOrigin and one AllowedMethod"
        ));
    }
    if lists.iter().any(|list| list.len() > CORS_RULE_NAMES_MAX) {
        return Err(s3_error!(
            InvalidRequest,
            "A CORS rule has at most {CORS_RULE_NAMES_MAX} of each element"
        ));
    }
    if rule
        .id
        .as_ref()
        .is_some_and(|id| id.chars().count() > CORS_ID_MAX_CHARS)
    {
        return Err(s3_error!(
            InvalidRequest,
            "The ID of a CORS rule has at most {CORS_ID_MAX_CHARS} characters"
        ));
    }
    check_names(&rule)?;
    Ok(rule)
}

/// What may stand in a rule.
fn check_names(rule: &Rule) -> S3Result {
    if let Some(method) = rule.methods.iter().find(|method| !is_method(method)) {
        return Err(s3_error!(
            InvalidRequest,
            "Found unsupported HTTP method in CORS config. Unsupported method is {method}"
        ));
    }
    for (element, patterns) in [
        ("AllowedOrigin", &rule.origins),
        ("AllowedHeader", &rule.headers),
    ] {
        let is_wild = |pattern: &&String| pattern.matches('*').count() > 1;
        if let Some(pattern) = patterns.iter().find(is_wild) {
            return Err(s3_error!(
                InvalidRequest,
                "{element} \"{pattern}\" can not have more than one wildcard."
            ));
        }
    }
    if let Some(header) = rule.exposed.iter().find(|header| header.contains('*')) {
        return Err(s3_error!(
            InvalidRequest,
            "ExposeHeader \"{header}\" contains wildcard. We currently do not support wildcard \
             for ExposeHeader."
        ));
    }
    if let Some(header) = rule.exposed.iter().find(|header| !is_header(header)) {
        return Err(s3_error!(
            InvalidRequest,
            "ExposeHeader \"{}\" contains invalid character.",
            header.escape_default()
        ));
    }
    if let Some(origin) = rule.origins.iter().find(|origin| !is_visible(origin)) {
        return Err(s3_error!(
            InvalidRequest,
            "AllowedOrigin \"{origin}\" is no origin."
        ));
    }
    if let Some(header) = rule.headers.iter().find(|header| !is_visible(header)) {
        return Err(s3_error!(
            InvalidRequest,
            "AllowedHeader \"{}\" contains invalid character.",
            header.escape_default()
        ));
    }
    if rule
        .id
        .as_ref()
        .is_some_and(|id| id.chars().any(char::is_control))
    {
        return Err(s3_error!(
            InvalidRequest,
            "The ID of a CORS rule has no control characters"
        ));
    }
    Ok(())
}

fn is_method(text: &str) -> bool {
    METHODS.iter().any(|method| method == text)
}

fn is_header(text: &str) -> bool {
    http::HeaderName::try_from(text).is_ok()
}

/// What can stand in a header as it is.
fn is_visible(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use s3s::xml::{Deserialize, Deserializer};

    use super::*;
    use crate::around_s3s::xml::canonical;

    fn rule(origins: &[&str], methods: &[&str], headers: &[&str]) -> CORSRule {
        let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        CORSRule {
            allowed_headers: (!headers.is_empty()).then(|| owned(headers)),
            allowed_methods: owned(methods),
            allowed_origins: owned(origins),
            ..Default::default()
        }
    }

    fn rules(rules: Vec<CORSRule>) -> S3Result<Rules> {
        Rules::of_client(CORSConfiguration { cors_rules: rules })
    }

    #[test]
    fn the_first_rule_that_allows_all_is_taken() {
        let some = rules(vec![
            rule(
                &["https://a.example"],
                &["PUT"],
                &["X-Amz-*", "content-type"],
            ),
            rule(&["https://*.example"], &["GET"], &[]),
            rule(&["*"], &["HEAD"], &[]),
        ])
        .unwrap();
        let found = |origin, method, headers: &[&str]| {
            let asked = Asked {
                origin,
                method,
                headers,
            };
            some.matching(asked)
                .and_then(|found| some.0.iter().position(|rule| rule == found))
        };
        assert_eq!(found("https://a.example", "PUT", &[]), Some(0));
        let both = ["x-amz-date", "Content-Type"];
        assert_eq!(found("https://a.example", "PUT", &both), Some(0));
        assert_eq!(found("https://a.example", "PUT", &["range"]), None);
        assert_eq!(
            found("https://A.example", "PUT", &[]),
            None,
            "origins have a case"
        );
        assert_eq!(found("https://a.example", "GET", &[]), Some(1));
        assert_eq!(found("https://.example", "GET", &[]), Some(1));
        assert_eq!(found("https://a.example", "GET", &["range"]), None);
        assert_eq!(
            found("https://.exampl", "GET", &[]),
            None,
            "start and end overlap"
        );
        assert_eq!(found("null", "HEAD", &[]), Some(2));
        assert_eq!(found("null", "DELETE", &[]), None);
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        let code = |made: S3Result<Rules>| made.unwrap_err().code().as_str().to_owned();
        assert_eq!(code(rules(vec![])), "MalformedXML");
        assert_eq!(code(rules(vec![rule(&[], &["GET"], &[])])), "MalformedXML");
        assert_eq!(code(rules(vec![rule(&["*"], &[], &[])])), "MalformedXML");
        let good = rule(&["*"], &["GET"], &[]);
        assert!(rules(vec![good.clone(); CORS_RULES_MAX]).is_ok());
        assert_eq!(
            code(rules(vec![good.clone(); CORS_RULES_MAX + 1])),
            "MalformedXML"
        );
        for wrong in [
            rule(&["*"], &["PATCH"], &[]),
            rule(&["*"], &["get"], &[]),
            rule(&["a*b*"], &["GET"], &[]),
            rule(&["*"], &["GET"], &["**"]),
            rule(&["a b"], &["GET"], &[]),
            rule(&[""], &["GET"], &[]),
            rule(&["*"; CORS_RULE_NAMES_MAX + 1], &["GET"], &[]),
            CORSRule {
                expose_headers: Some(vec!["x-*".into()]),
                ..good.clone()
            },
            CORSRule {
                id: Some("i".repeat(CORS_ID_MAX_CHARS + 1)),
                ..good.clone()
            },
            CORSRule {
                id: Some("a\u{1}b".into()),
                ..good.clone()
            },
            rule(&["*"], &["GET"], &["x-a\r\nx-b"]),
        ] {
            assert_eq!(code(rules(vec![wrong])), "InvalidRequest");
        }
    }

    #[test]
    fn an_age_is_a_number_of_32_bits_with_a_sign() {
        let read = |age: &str| {
            let rule = "<AllowedMethod>GET</AllowedMethod><AllowedOrigin>*</AllowedOrigin>";
            let age = format!("<MaxAgeSeconds>{age}</MaxAgeSeconds>");
            let document = format!("<CORSRule>{rule}{age}</CORSRule>");
            let document = format!("<CORSConfiguration>{document}</CORSConfiguration>");
            let document = canonical(document.as_bytes(), 1_000).ok()?;
            let mut xml = Deserializer::new(document.as_bytes());
            let given = CORSConfiguration::deserialize(&mut xml).ok()?;
            xml.expect_eof().ok()?;
            let told = Rules::of_client(given).ok()?.to_client();
            Some(told[0].max_age_seconds.unwrap())
        };
        for age in [i32::MIN, -1, 0, i32::MAX] {
            assert_eq!(read(&age.to_string()), Some(age));
        }
        for wrong in ["2147483648", "-2147483649", "99999999999999999999", "-", ""] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_kept_comes_back() {
        let mut full = rule(&["https://a.example"], &["GET", "PUT"], &["*"]);
        full.id = Some("first".into());
        full.expose_headers = Some(vec!["ETag".into()]);
        full.max_age_seconds = Some(3_000);
        let mut ageless = rule(&["*"], &["HEAD"], &[]);
        ageless.max_age_seconds = Some(-100);
        let given = vec![full, ageless];
        let kept = serde_json::to_string(&rules(given.clone()).unwrap()).unwrap();
        let read: Rules = serde_json::from_str(&kept).unwrap();
        assert_eq!(read.to_client(), given);
    }
}
