//! The API's description, as far as it is not generated from the routes.

use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    Components, ContentBuilder, InfoBuilder, OpenApi, PathItem, Ref, ResponseBuilder,
};
use utoipa::{PartialSchema, ToSchema};

use crate::api::approvals::ApprovalOutcome;
use crate::http::refusal::{ErrorBody, ErrorDetail};

const BASIC: &str = "access_key";
const DEFAULT: &str = "default";

const ABOUT: &str = "\
The administration of a coffer server: over HTTPS with an access key (HTTP Basic: its id and its \
secret), or over the socket `admin.sock` in the data folder, whose users need none. \
Every error is JSON with a code for programs and a message for people.";

/// Completes what the routes tell: what the API is, how to sign in, how errors look.
pub(crate) fn describe(mut api: OpenApi) -> String {
    api.info = InfoBuilder::new()
        .title("coffer administration")
        .description(Some(ABOUT))
        .version(env!("CARGO_PKG_VERSION"))
        .build();
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Basic).build();
    let components = api.components.get_or_insert_with(Components::new);
    components.add_security_scheme(BASIC, SecurityScheme::Http(scheme));
    // What several operations answer, and so is not found beside one of them.
    for (name, schema) in [
        (ErrorBody::name(), ErrorBody::schema()),
        (ErrorDetail::name(), ErrorDetail::schema()),
        (ApprovalOutcome::name(), ApprovalOutcome::schema()),
    ] {
        components.schemas.insert(name.into_owned(), schema);
    }
    let nothing: [&str; 0] = [];
    api.security = Some(vec![SecurityRequirement::new(BASIC, nothing)]);
    for path in api.paths.paths.values_mut() {
        add_errors(path);
    }
    let mut text = api
        .to_pretty_json()
        .expect("a description has only what JSON can say");
    text.push('\n');
    text
}

fn add_errors(path: &mut PathItem) {
    let operations = [
        &mut path.get,
        &mut path.put,
        &mut path.post,
        &mut path.patch,
        &mut path.delete,
    ];
    for operation in operations.into_iter().flatten() {
        let body = ContentBuilder::new()
            .schema(Some(Ref::from_schema_name(ErrorBody::name())))
            .build();
        let error = ResponseBuilder::new()
            .description("Why it was not done")
            .content("application/json", body)
            .build();
        let responses = &mut operation.responses.responses;
        responses.insert(DEFAULT.to_owned(), error.into());
    }
}
