//! S3's words for errors of s3s's own making: where it gives none, and where it could not read a
//! parameter.

use crate::around_s3s::header_compat::NUMBERS;

/// Messages for the errors that s3s makes itself and leaves without.
const MESSAGES: [(&str, &str); 12] = [
    ("InvalidBucketName", "The specified bucket is not valid."),
    ("KeyTooLongError", "Your key is too long"),
    ("InvalidURI", "Couldn't parse the specified URI."),
    (
        "MethodNotAllowed",
        "The specified method is not allowed against this resource.",
    ),
    (
        "MissingContentLength",
        "You must provide the Content-Length HTTP header.",
    ),
    (
        "IncompleteBody",
        "The body does not have the length that Content-Length gives",
    ),
    ("MaxMessageLengthExceeded", "Your request was too large."),
    ("MissingRequestBodyError", "Request body is empty."),
    (
        "MalformedXML",
        "The XML you provided was not well-formed or did not validate against our published \
         schema",
    ),
    (
        "MalformedPOSTRequest",
        "The body of your POST request is not well-formed multipart/form-data.",
    ),
    ("NotImplemented", "This operation is not implemented"),
    ("InvalidRange", "The requested range is not satisfiable"),
];

/// How s3s begins what it says of a parameter that it could not read.
const UNREAD: &str = "invalid query: ";

/// The message of an error that s3s leaves without.
pub(crate) fn message(code: &str) -> Option<&'static str> {
    let found = MESSAGES.iter().find(|(known, _)| *known == code);
    found.map(|(_, message)| *message)
}

/// How s3s ends what it says of an operation that a service leaves out.
const NOT_YET: &str = " is not implemented yet</Message>";

/// Leaves the "yet" out, which would promise what is refused for good.
pub(crate) fn without_promise(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?;
    let said = NOT_YET.replace(" yet", "");
    text.contains(NOT_YET)
        .then(|| text.replacen(NOT_YET, &said, 1))
}

/// A parameter that s3s could not read, which it names in its message. Both texts are XML.
pub(crate) struct UnreadArgument {
    name: String,
    sent: String,
}

impl UnreadArgument {
    pub(crate) fn of(body: &[u8]) -> Option<Self> {
        let message = element(body, "Message")?;
        let (name, sent) = message.strip_prefix(UNREAD)?.split_once(": ")?;
        Some(Self {
            name: name.to_owned(),
            sent: sent.to_owned(),
        })
    }

    pub(crate) fn elements(&self) -> String {
        let Self { name, sent } = self;
        format!("<ArgumentName>{name}</ArgumentName><ArgumentValue>{sent}</ArgumentValue>")
    }

    /// The error with S3's message, where the parameter is a number.
    pub(crate) fn in_the_words_of_s3(&self, body: &[u8]) -> Option<String> {
        let Self { name, sent } = self;
        if !NUMBERS.contains(&name.as_str()) {
            return None;
        }
        let told = format!("<Message>{UNREAD}{name}: {sent}</Message>");
        let words = "not an integer or within integer range";
        let text = std::str::from_utf8(body).ok()?;
        Some(text.replacen(
            &told,
            &format!("<Message>Provided {name} {words}</Message>"),
            1,
        ))
    }
}

/// The text of the first element of a name, in an error of s3s's making.
pub(crate) fn element<'a>(body: &'a [u8], name: &str) -> Option<&'a str> {
    let text = std::str::from_utf8(body).ok()?;
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once('<').map(|(text, _)| text)
}
