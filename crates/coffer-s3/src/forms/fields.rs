//! The fields of a form before its file (RFC 7578), and the file as it arrives.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use multer::{Constraints, Field, Multipart, SizeLimit};
use s3s::{S3Error, S3Result, s3_error};

use crate::errors::custom;
use crate::errors::details::of_argument;
use crate::http::percent::form_pairs;
use crate::limits::{ECHO_MAX_BYTES, FORM_FIELDS_MAX, FORM_FIELDS_MAX_BYTES, FORM_START_MAX_BYTES};
use crate::parameters::not_implemented::SUBRESOURCES;

const FORM: &[u8] = b"multipart/form-data";
const FILE: &str = "file";

/// How the names of fields begin whose meaning is S3's own.
const OF_S3: &str = "x-amz-";

/// Fields that are headers of the object.
const HEADERS: [&str; 7] = [
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-md5",
    "content-type",
    "expires",
];

/// Fields that are about the signature, and no headers.
const OF_SIGNATURE: [&str; 4] = [
    "x-amz-algorithm",
    "x-amz-credential",
    "x-amz-date",
    "x-amz-signature",
];

/// Names in the query of a POST that is no form, besides those of subresources.
const OPERATIONS: [&str; 2] = ["coffer-transfer", "uploadId"];

/// Whether a request is a form: a POST of another kind says in its query what it is, and may be of
/// an object whose type is that of forms.
pub(crate) fn is_form(method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let start = content_type.and_then(|kind| kind.trim_ascii_start().get(..FORM.len()));
    method == Method::POST
        && start.is_some_and(|start| start.eq_ignore_ascii_case(FORM))
        && !names_operation(uri.query().unwrap_or(""))
}

fn names_operation(query: &str) -> bool {
    let pairs = form_pairs(query).unwrap_or_default();
    pairs.iter().any(|(name, _)| {
        let name = name.as_str();
        OPERATIONS.contains(&name) || SUBRESOURCES.contains(&name)
    })
}

/// The address of a form has no query.
///
/// # Errors
/// `InvalidArgument`, as S3, which tells a parameter's name, and `null` for its value.
pub(crate) fn check_query(uri: &Uri) -> S3Result {
    let Some(query) = uri.query().filter(|query| !query.is_empty()) else {
        return Ok(());
    };
    let error = s3_error!(
        InvalidArgument,
        "Query String Parameters not allowed on POST requests."
    );
    let pairs = form_pairs(query).unwrap_or_default();
    Err(match pairs.first() {
        Some((name, _)) if name.len() <= ECHO_MAX_BYTES => of_argument(error, name, "null"),
        _ => error,
    })
}

/// The bytes of a form, which end with an error where too many come before its file: what stands
/// outside of fields is held as well, and searched anew with each piece.
fn bounded(
    body: impl Stream<Item = Result<Bytes, s3s::StdError>> + Send + 'static,
    is_file: Arc<AtomicBool>,
) -> impl Stream<Item = Result<Bytes, s3s::StdError>> + Send + 'static {
    let mut read_bytes = 0;
    body.map(move |piece| {
        if read_bytes > FORM_START_MAX_BYTES && !is_file.load(Ordering::Relaxed) {
            return Err("too much comes before the file".into());
        }
        piece.inspect(|bytes| read_bytes += bytes.len())
    })
}

/// What came before the file, and the file itself, of which nothing has been read.
pub(crate) struct Form {
    pub(crate) fields: Fields,
    pub(crate) file: Field<'static>,
}

/// Names, in lower case, and values, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Form {
    /// Reads up to the file. What comes behind it does not count, as with S3.
    ///
    /// # Errors
    /// As S3: `MalformedPOSTRequest`, `MaxPostPreDataLengthExceeded`, and `InvalidArgument` where
    /// there is no file. What the body's own failure is stands in the request's context.
    pub(crate) async fn read(
        headers: &HeaderMap,
        body: impl Stream<Item = Result<Bytes, s3s::StdError>> + Send + 'static,
    ) -> S3Result<Self> {
        let content_type = headers
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok());
        let boundary = content_type.and_then(|kind| multer::parse_boundary(kind).ok());
        let boundary = boundary.ok_or_else(malformed)?;
        let most = FORM_FIELDS_MAX_BYTES as u64;
        let sizes = SizeLimit::new().per_field(most).for_field(FILE, u64::MAX);
        let constraints = Constraints::new().size_limit(sizes);
        let is_file = Arc::new(AtomicBool::new(false));
        let body = bounded(body, is_file.clone()).boxed();
        let mut form = Multipart::with_constraints(body, boundary, constraints);
        let (mut fields, mut read_bytes) = (Fields::default(), 0);
        while let Some(field) = form.next_field().await.map_err(refused)? {
            let name = field.name().ok_or_else(malformed)?.to_ascii_lowercase();
            if name == FILE {
                is_file.store(true, Ordering::Relaxed);
                let file = field;
                return Ok(Self { fields, file });
            }
            let value = field.bytes().await.map_err(refused)?;
            read_bytes += name.len() + value.len();
            if read_bytes > FORM_FIELDS_MAX_BYTES || fields.0.len() == FORM_FIELDS_MAX {
                return Err(too_long());
            }
            let value = String::from_utf8(value.into()).map_err(|_| malformed())?;
            if fields.get(&name).is_some() && !name.starts_with("x-ignore-") {
                return Err(s3_error!(
                    InvalidArgument,
                    "POST requires exactly one of each field; there are two of {name}"
                ));
            }
            fields.0.push((name, value));
        }
        let error = s3_error!(
            InvalidArgument,
            "POST requires exactly one file upload per request."
        );
        Err(of_argument(error, FILE, "0"))
    }
}

impl Fields {
    #[cfg(test)]
    pub(crate) fn of(pairs: &[(&str, &str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self(pairs.iter().map(owned).collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let field = self.0.iter().find(|(other, _)| other == name);
        field.map(|(_, value)| value.as_str())
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The object's name: `${filename}` stands for that of the file, without its folders.
    ///
    /// # Errors
    /// `InvalidArgument` where there is none, or it is empty.
    pub(crate) fn key(&self, file: &Field<'_>) -> S3Result<String> {
        let key = self.get("key").ok_or_else(|| missing("key"))?;
        let name = file.file_name().unwrap_or("");
        let name = name.rsplit(['/', '\\']).next().unwrap_or("");
        let key = key.replace("${filename}", name);
        if key.is_empty() {
            let error = s3_error!(
                InvalidArgument,
                "User key must have a length greater than 0."
            );
            return Err(of_argument(error, "key", ""));
        }
        Ok(key)
    }

    /// The fields that are headers of a PUT.
    ///
    /// # Errors
    /// `InvalidArgument` for a value that no header can have.
    pub(crate) fn headers(&self) -> S3Result<HeaderMap> {
        let mut headers = HeaderMap::new();
        for (name, value) in self.each() {
            let name = match name {
                "acl" => "x-amz-acl",
                name if OF_SIGNATURE.contains(&name) => continue,
                name if HEADERS.contains(&name) || name.starts_with(OF_S3) => name,
                _ => continue,
            };
            let wrong = || s3_error!(InvalidArgument, "The field {name} is no header");
            let key = HeaderName::try_from(name).map_err(|_| wrong())?;
            let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| wrong())?;
            headers.insert(key, value);
        }
        Ok(headers)
    }

    /// The fields whose names are those of conditions, which forms do not have: their names alone.
    pub(crate) fn conditions(&self) -> HeaderMap {
        let named = self.each().filter(|(name, _)| name.starts_with("if-"));
        let empty = HeaderValue::from_static("");
        named
            .filter_map(|(name, _)| Some((HeaderName::try_from(name).ok()?, empty.clone())))
            .collect()
    }
}

/// A field is not there.
pub(crate) fn missing(name: &str) -> S3Error {
    let error = s3_error!(
        InvalidArgument,
        "Bucket POST must contain a field named '{name}'.  If it is specified, please check the \
         order of the fields."
    );
    of_argument(error, name, "")
}

fn refused(error: multer::Error) -> S3Error {
    match error {
        multer::Error::FieldSizeExceeded { .. } | multer::Error::StreamReadFailed(_) => too_long(),
        _ => malformed(),
    }
}

fn malformed() -> S3Error {
    s3_error!(
        MalformedPOSTRequest,
        "The body of your POST request is not well-formed multipart/form-data."
    )
}

fn too_long() -> S3Error {
    custom(
        "MaxPostPreDataLengthExceeded",
        StatusCode::BAD_REQUEST,
        format!(
            "Your POST request fields preceding the upload file were too large: {FORM_FIELDS_MAX} \
             fields of {FORM_FIELDS_MAX_BYTES} bytes in all may be there."
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(body: &str) -> S3Result<Form> {
        let mut headers = HeaderMap::new();
        let kind = HeaderValue::from_static("multipart/form-data; boundary=x");
        headers.insert(CONTENT_TYPE, kind);
        let pieces: Vec<_> = body
            .as_bytes()
            .chunks(7)
            .map(Bytes::copy_from_slice)
            .collect();
        Form::read(&headers, futures::stream::iter(pieces.into_iter().map(Ok))).await
    }

    fn part(name: &str, value: &str) -> String {
        format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    }

    const A_FILE: &str = "--x\r\nContent-Disposition: form-data; name=\"file\"; \
                          filename=\"C:\\\\dir\\\\a b.txt\"\r\n\r\ncontent\r\n--x--\r\n";

    #[tokio::test]
    async fn fields_are_read_up_to_the_file() {
        let all = [
            part("key", "in/${filename}"),
            part("Content-Type", "text/plain"),
            part("x-amz-meta-a", "b"),
            part("X-Amz-Date", "20260101T000000Z"),
            part("other", "c"),
        ];
        let form = read(&(all.concat() + A_FILE)).await.unwrap();
        assert_eq!(form.fields.key(&form.file).unwrap(), "in/a b.txt");
        let headers = form.fields.headers().unwrap();
        let names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["content-type", "x-amz-meta-a"]);
        assert_eq!(form.fields.get("other"), Some("c"));
        assert_eq!(form.file.bytes().await.unwrap(), "content");
    }

    #[tokio::test]
    async fn a_key_has_a_length() {
        let key = |form: S3Result<Form>| {
            let form = form.unwrap();
            form.fields.key(&form.file)
        };
        let nameless = A_FILE.replace("C:\\\\dir\\\\a b.txt", "");
        for empty in [
            part("key", "") + A_FILE,
            part("key", "${filename}") + &nameless,
        ] {
            let refused = key(read(&empty).await).unwrap_err();
            let words = "User key must have a length greater than 0.";
            assert_eq!(refused.message(), Some(words), "{empty}");
        }
    }

    #[test]
    fn a_form_is_told_by_its_type_and_has_no_query() {
        let mut headers = HeaderMap::new();
        let kind = HeaderValue::from_static("Multipart/Form-Data; boundary=x");
        headers.insert(CONTENT_TYPE, kind);
        let uri = |text: &str| text.parse::<Uri>().unwrap();
        let is_form = |text: &str| is_form(&Method::POST, &uri(text), &headers);
        for plain in ["/b", "/b?"] {
            assert!(
                is_form(plain) && check_query(&uri(plain)).is_ok(),
                "{plain}"
            );
        }
        for query in ["/b?t=1", "/b?x-id=PostObject", "/b?%zz", "/b?a=%ff"] {
            assert!(is_form(query), "{query}");
            let refused = check_query(&uri(query)).unwrap_err();
            assert_eq!(refused.code().as_str(), "InvalidArgument", "{query}");
        }
        // Objects of this type are uploaded and sent sealed, too.
        for other in [
            "/b/k?uploads",
            "/b/k?uploads=&x-id=CreateMultipartUpload",
            "/b/k?uploadId=u",
            "/b/k?coffer-transfer",
            "/b?d%65lete",
        ] {
            assert!(!is_form(other), "{other}");
        }
    }

    #[tokio::test]
    async fn what_is_no_form_is_refused() {
        let code = |form: S3Result<Form>| form.err().unwrap().code().as_str().to_owned();
        for malformed in [
            "",
            "--x",
            "nothing of it",
            "--x\r\n\r\nno name\r\n--x--\r\n",
        ] {
            assert_eq!(
                code(read(malformed).await),
                "MalformedPOSTRequest",
                "{malformed}"
            );
        }
        let no_file = part("key", "a") + "--x--\r\n";
        assert_eq!(code(read(&no_file).await), "InvalidArgument");
        let twice = part("key", "a") + &part("Key", "b") + A_FILE;
        assert_eq!(code(read(&twice).await), "InvalidArgument");
        let long = part("a", &"v".repeat(FORM_FIELDS_MAX_BYTES + 1)) + A_FILE;
        assert_eq!(code(read(&long).await), "MaxPostPreDataLengthExceeded");
        let half = "v".repeat(FORM_FIELDS_MAX_BYTES / 2);
        let long = part("a", &half) + &part("b", &half) + A_FILE;
        assert_eq!(code(read(&long).await), "MaxPostPreDataLengthExceeded");
        let many = part("x-ignore-a", "").repeat(FORM_FIELDS_MAX + 1) + A_FILE;
        assert_eq!(code(read(&many).await), "MaxPostPreDataLengthExceeded");
    }
}
