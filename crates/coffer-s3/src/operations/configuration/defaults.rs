//! Configuration of buckets that can't be set here, but can be set to what it is anyway: programs
//! that look after buckets do so. All else is `NotImplemented`, with a sentence.

use coffer_vault::Vault;
use s3s::dto::*;
use s3s::{S3Error, S3Request, S3Response, S3Result, s3_error};

use crate::errors::not_implemented;
use crate::operations::buckets::bucket_info;
use crate::request::caller::{Caller, headers};

/// What succeeds where it changes nothing, once it is known that the bucket is there, and that the
/// caller may know.
macro_rules! set_to_default {
    ($($function:ident($input:ident) -> $output:ident if $is_default:expr, or $why:expr;)*) => {
        $(
            pub(crate) async fn $function(
                vault: &Vault,
                request: S3Request<$input>,
            ) -> S3Result<S3Response<$output>> {
                let caller = Caller::of(&request)?;
                caller.check_xml_body(headers(&request))?;
                bucket_info(vault, &caller, &request.input.bucket).await?;
                let is_default: fn(&$input) -> S3Result<bool> = $is_default;
                if is_default(&request.input)? {
                    Ok(S3Response::new($output::default()))
                } else {
                    Err(refused($why))
                }
            }
        )*
    };
}

fn refused(what: &'static str) -> S3Error {
    not_implemented(what)
}

/// A value that S3 does not have.
fn malformed(what: &'static str) -> S3Error {
    s3_error!(
        MalformedXML,
        "The XML you provided was not well-formed or did not validate against our published \
         schema: {what}"
    )
}

set_to_default! {
    accelerate(PutBucketAccelerateConfigurationInput) -> PutBucketAccelerateConfigurationOutput
        if |input| {
            let status = input.accelerate_configuration.status.as_ref();
            match status.map(BucketAccelerateStatus::as_str) {
                Some(BucketAccelerateStatus::SUSPENDED) => Ok(true),
                Some(BucketAccelerateStatus::ENABLED) => Ok(false),
                _ => Err(malformed("Status is Enabled or Suspended")),
            }
        },
        or "Transfer acceleration, a network of AWS's,";
    logging(PutBucketLoggingInput) -> PutBucketLoggingOutput
        if |input| Ok(input.bucket_logging_status.logging_enabled.is_none()),
        or "Logging accesses into a bucket (an audit log by --audit-data has them)";
    notification(PutBucketNotificationConfigurationInput)
        -> PutBucketNotificationConfigurationOutput
        if |input| {
            let NotificationConfiguration {
                event_bridge_configuration,
                lambda_function_configurations,
                queue_configurations,
                topic_configurations,
            } = &input.notification_configuration;
            Ok(event_bridge_configuration.is_none()
                && lambda_function_configurations.as_ref().is_none_or(Vec::is_empty)
                && queue_configurations.as_ref().is_none_or(Vec::is_empty)
                && topic_configurations.as_ref().is_none_or(Vec::is_empty))
        },
        or "Notifying of events (coffer audit follow does, by --audit-data)";
    request_payment(PutBucketRequestPaymentInput) -> PutBucketRequestPaymentOutput
        if |input| {
            match input.request_payment_configuration.payer.as_str() {
                Payer::BUCKET_OWNER => Ok(true),
                Payer::REQUESTER => Ok(false),
                _ => Err(malformed("Payer is BucketOwner or Requester")),
            }
        },
        or "Having requesters pay";
    no_replication(DeleteBucketReplicationInput) -> DeleteBucketReplicationOutput
        if |_| Ok(true), or "";
    no_website(DeleteBucketWebsiteInput) -> DeleteBucketWebsiteOutput if |_| Ok(true), or "";
}
