//! What browsers are told: answers to what they ask ahead of a request, and headers on answers.

use std::borrow::Cow;
use std::collections::HashSet;

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, HeaderName, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use s3s::{Body, HttpResponse, S3Error, S3Result};

use crate::cors::rules::{Asked, Rule, Rules};
use crate::errors::{custom, details};
use crate::limits::CORS_ASKED_HEADERS_MAX;

/// What an answer depends on: caches keep one for each.
const DEPENDS_ON: HeaderValue = HeaderValue::from_static(
    "Origin, Access-Control-Request-Headers, Access-Control-Request-Method",
);

/// In S3's words, as they are compared.
const NOT_ALLOWED: &str = "This CORS request is not allowed. This is usually because the evalution \
     of Origin, request method / Access-Control-Request-Method or Access-Control-Request-Headers \
     are not whitelisted by the resource's CORS spec.";

/// What rules may allow.
const METHODS: [&str; 5] = ["DELETE", "GET", "HEAD", "POST", "PUT"];

/// A cross-origin request, as its headers tell.
#[derive(Clone, Debug)]
pub(crate) struct CrossOrigin {
    origin: String,
    method: String,
    headers: Vec<String>,
    is_ahead: bool,
}

impl CrossOrigin {
    /// None where no page of another origin asks.
    pub(crate) fn of(method: &Method, headers: &HeaderMap) -> Option<Self> {
        let text = |name: HeaderName| headers.get(name)?.to_str().ok();
        // S3 takes the method that is asked for also where it is not asked ahead.
        let asked = text(ACCESS_CONTROL_REQUEST_METHOD).unwrap_or(method.as_str());
        let is_ahead = method == Method::OPTIONS;
        let names = text(ACCESS_CONTROL_REQUEST_HEADERS).filter(|_| is_ahead);
        let mut seen = HashSet::new();
        Some(Self {
            origin: text(ORIGIN).filter(|origin| !origin.is_empty())?.to_owned(),
            method: asked.to_owned(),
            headers: names
                .unwrap_or("")
                .split(',')
                .map(|name| name.trim().to_ascii_lowercase())
                .filter(|name| !name.is_empty() && seen.insert(name.clone()))
                .collect(),
            is_ahead,
        })
    }

    fn matching<'a>(&self, rules: &'a Rules) -> Option<&'a Rule> {
        let headers: Vec<&str> = self.headers.iter().map(String::as_str).collect();
        rules.matching(Asked {
            origin: &self.origin,
            method: &self.method,
            headers: &headers,
        })
    }

    /// Whether it asked ahead, and is answered with a refusal.
    pub(crate) fn is_refused(&self, status: StatusCode) -> bool {
        self.is_ahead && !status.is_success()
    }

    /// Adds to an answer of this status what a page may do with it: nothing where it asked ahead
    /// and was refused.
    pub(crate) fn allow(&self, rules: &Rules, status: StatusCode, answer: &mut HeaderMap) {
        // Also where nothing is allowed: a cache must not give that to a page that is allowed.
        answer.insert(VARY, DEPENDS_ON);
        if self.is_refused(status) {
            return;
        }
        let Some(rule) = self.matching(rules) else {
            return;
        };
        let mut set = |name, value: &str| {
            // What does not fit was refused when it was set, or came in a header itself.
            if let Ok(value) = HeaderValue::try_from(value) {
                answer.insert(name, value);
            }
        };
        if rule.is_for_all() {
            set(ACCESS_CONTROL_ALLOW_ORIGIN, "*");
        } else {
            set(ACCESS_CONTROL_ALLOW_ORIGIN, &self.origin);
            set(ACCESS_CONTROL_ALLOW_CREDENTIALS, "true");
        }
        set(ACCESS_CONTROL_ALLOW_METHODS, &rule.methods.join(", "));
        if !self.headers.is_empty() {
            set(ACCESS_CONTROL_ALLOW_HEADERS, &self.headers.join(", "));
        }
        if !rule.exposed.is_empty() {
            set(ACCESS_CONTROL_EXPOSE_HEADERS, &rule.exposed.join(", "));
        }
        if let (true, Some(seconds)) = (self.is_ahead, rule.max_age_seconds) {
            set(ACCESS_CONTROL_MAX_AGE, &seconds.to_string());
        }
    }
}

/// Answers a request that a browser sends ahead; [`CrossOrigin::allow`] adds what is allowed.
///
/// # Errors
/// As S3: when the request lacks what it is for, and when no rule allows it. That there is no such
/// bucket is told no otherwise than that it has no rules.
pub(crate) fn asked_ahead(headers: &HeaderMap, rules: Option<&Rules>) -> S3Result<HttpResponse> {
    let wrong = |message: Cow<'static, str>| custom("BadRequest", StatusCode::BAD_REQUEST, message);
    let asked = CrossOrigin::of(&Method::OPTIONS, headers)
        .ok_or_else(|| wrong("Insufficient information. Origin request header needed.".into()))?;
    let not_enabled = || {
        let why = "CORS is not enabled for this bucket.";
        forbidden(why, &asked.method, "BUCKET")
    };
    if !headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        rules.ok_or_else(not_enabled)?;
        return Err(wrong("Invalid Access-Control-Request-Method: null".into()));
    }
    if !METHODS.contains(&asked.method.as_str()) {
        let told = format!("Invalid Access-Control-Request-Method: {}", asked.method);
        return Err(wrong(told.into()));
    }
    let is_none = |name: &&String| HeaderName::try_from(name.as_str()).is_err();
    if let Some(name) = asked.headers.iter().find(is_none) {
        let told = format!("Access-Control-Request-Headers \"{name}\" contains invalid character.");
        return Err(wrong(told.into()));
    }
    if asked.headers.len() > CORS_ASKED_HEADERS_MAX {
        return Err(wrong(
            "Too many headers in Access-Control-Request-Headers".into(),
        ));
    }
    let rules = rules.ok_or_else(not_enabled)?;
    if asked.matching(rules).is_none() {
        return Err(forbidden(NOT_ALLOWED, &asked.method, "OBJECT"));
    }
    Ok(HttpResponse::new(Body::empty()))
}

fn forbidden(why: &str, method: &str, resource_type: &str) -> S3Error {
    let message = format!("CORSResponse: {why}");
    let error = custom("AccessForbidden", StatusCode::FORBIDDEN, message);
    let told = vec![
        ("Method", method.to_owned()),
        ("ResourceType", resource_type.to_owned()),
    ];
    details::with(error, told)
}
