//! Stores of clouds: S3, Azure's blobs and Google's, by their URLs and credentials.
//!
//! No credentials are looked for beyond the file that is named and the environment: what a virtual
//! machine is given by its cloud is not asked for, so that a copy is written in no name but the one
//! that was chosen for it.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::list::PaginatedListStore;
use object_store::prefix::PrefixStore;
use object_store::{Certificate, ClientOptions, ObjectStore, RetryConfig};

use super::Place;
use super::guarded::Guarded;
use crate::error::Result;
use crate::limits::{CONNECT_TIMEOUT, REQUEST_TIMEOUT, RETRIES, RETRY_TIMEOUT, SETTINGS_MAX_BYTES};

/// The region where none is named.
const REGION: &str = "us-east-1";

/// What the tools of AWS call access key, secret and token, in files and in the environment.
const AWS: [(&str, &str); 3] = [
    ("aws_access_key_id", "AWS_ACCESS_KEY_ID"),
    ("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY"),
    ("aws_session_token", "AWS_SESSION_TOKEN"),
];

/// What the tools of Azure call account, key and shared access signature.
const AZURE: [(&str, &str); 3] = [
    ("account", "AZURE_STORAGE_ACCOUNT"),
    ("key", "AZURE_STORAGE_KEY"),
    ("sas_token", "AZURE_STORAGE_SAS_TOKEN"),
];

/// What names a file of credentials for Google's tools.
const GOOGLE: &str = "GOOGLE_APPLICATION_CREDENTIALS";

impl Place {
    pub(super) fn open_cloud(&self) -> Result<Arc<dyn ObjectStore>> {
        match self.url.scheme() {
            "az" => self.open_azure(),
            "gs" => self.open_google(),
            _ => self.open_s3(),
        }
    }

    fn open_s3(&self) -> Result<Arc<dyn ObjectStore>> {
        let region = self.parameter("region");
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(self.url.host_str().unwrap_or_default())
            .with_region(region.as_deref().unwrap_or(REGION))
            .with_client_options(self.client()?)
            .with_retry(retries());
        if let Some(endpoint) = self.parameter("endpoint") {
            builder = builder
                .with_endpoint(endpoint)
                .with_virtual_hosted_style_request(false);
        }
        let [Some(id), Some(secret), token] = self.credentials(AWS)? else {
            return Err(self.refused(
                "there are no credentials: name a file as the AWS tools have it, \
                 `?credentials=FILE`, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for the \
                 server",
            ));
        };
        builder = builder
            .with_access_key_id(id)
            .with_secret_access_key(secret);
        if let Some(token) = token {
            builder = builder.with_token(token);
        }
        if let Some(checksum) = self.parameter("checksum") {
            builder = builder.with_config(AmazonS3ConfigKey::Checksum, checksum);
        }
        self.guarded(builder.build())
    }

    fn open_azure(&self) -> Result<Arc<dyn ObjectStore>> {
        let [account, key, signature] = self.credentials(AZURE)?;
        let Some(account) = self.parameter("account").or(account) else {
            return Err(self.refused("it names no storage account: `?account=NAME`"));
        };
        let mut builder = MicrosoftAzureBuilder::new()
            .with_container_name(self.url.host_str().unwrap_or_default())
            .with_account(account)
            .with_client_options(self.client()?)
            .with_retry(retries());
        if let Some(endpoint) = self.parameter("endpoint") {
            builder = builder.with_endpoint(endpoint);
        }
        builder = match (key, signature) {
            (Some(key), _) => builder.with_access_key(key),
            (None, Some(signature)) => builder.with_config(AzureConfigKey::SasKey, signature),
            (None, None) => {
                return Err(self.refused(
                    "there are no credentials: name a file with `key = …` or `sas_token = …` in \
                     it, as the configuration of the Azure CLI has them, `?credentials=FILE`, or \
                     set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN for the server",
                ));
            }
        };
        self.guarded(builder.build())
    }

    fn open_google(&self) -> Result<Arc<dyn ObjectStore>> {
        let named = self.parameter("credentials");
        let Some(file) = named.or_else(|| std::env::var(GOOGLE).ok()) else {
            return Err(self.refused(
                "there are no credentials: name the JSON file of a service account's key, \
                 `?credentials=FILE`, or set GOOGLE_APPLICATION_CREDENTIALS for the server",
            ));
        };
        let mut builder = GoogleCloudStorageBuilder::new()
            .with_bucket_name(self.url.host_str().unwrap_or_default())
            .with_client_options(self.client()?)
            .with_retry(retries());
        if let Some(endpoint) = self.parameter("endpoint") {
            builder = builder.with_base_url(endpoint.trim_end_matches('/'));
        }
        let text = self.read(&file)?;
        builder = if is_of_a_user(&text) {
            builder.with_application_credentials(file)
        } else {
            builder.with_service_account_key(text)
        };
        self.guarded(builder.build())
    }

    fn parameter(&self, name: &str) -> Option<String> {
        let mut pairs = self.url.query_pairs();
        pairs.find_map(|(found, value)| (found == name).then(|| value.into_owned()))
    }

    /// Without encryption only to where it is said.
    fn client(&self) -> Result<ClientOptions> {
        let endpoint = self.parameter("endpoint");
        let is_clear = endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"));
        let mut client = ClientOptions::new()
            .with_timeout(REQUEST_TIMEOUT)
            .with_connect_timeout(CONNECT_TIMEOUT)
            .with_allow_http(is_clear);
        if let Some(ca) = self.parameter("ca") {
            let pem = self.read(&ca)?;
            let all = Certificate::from_pem_bundle(pem.as_bytes());
            for certificate in all.map_err(|error| self.refused(error))? {
                client = client.with_root_certificate(certificate);
            }
        }
        Ok(client)
    }

    /// From the file alone, if one is named: half of them from elsewhere would be no one's.
    fn credentials<const N: usize>(&self, names: [(&str, &str); N]) -> Result<[Option<String>; N]> {
        let Some(file) = self.parameter("credentials") else {
            return Ok(names.map(|(_, name)| std::env::var(name).ok()));
        };
        let found = credentials_in(&self.read(&file)?);
        Ok(names.map(|(name, _)| found.get(name).cloned()))
    }

    fn read(&self, file: &str) -> Result<String> {
        let read = |file: &str| {
            let mut text = String::new();
            let opened = File::open(file)?;
            opened.take(SETTINGS_MAX_BYTES).read_to_string(&mut text)?;
            Ok::<_, std::io::Error>(text)
        };
        read(file).map_err(|error| self.refused(format!("{file}: {error}")))
    }

    fn guarded<S: ObjectStore + PaginatedListStore>(
        &self,
        store: object_store::Result<S>,
    ) -> Result<Arc<dyn ObjectStore>> {
        let store = Guarded::new(store.map_err(|error| self.refused(error))?);
        let prefix = self.url.path().trim_matches('/');
        if prefix.is_empty() {
            return Ok(Arc::new(store));
        }
        Ok(Arc::new(PrefixStore::new(store, prefix)))
    }
}

fn retries() -> RetryConfig {
    RetryConfig {
        max_retries: RETRIES,
        retry_timeout: RETRY_TIMEOUT,
        ..RetryConfig::default()
    }
}

/// What a file says, of several profiles the first that does.
fn credentials_in(text: &str) -> HashMap<String, String> {
    let mut found = HashMap::new();
    for line in text.lines() {
        if let Some((name, value)) = line.split_once('=') {
            let name = name.trim().to_owned();
            found.entry(name).or_insert_with(|| value.trim().to_owned());
        }
    }
    found
}

/// Whether these are the credentials of one who signed in with Google's tools, rather than a
/// service account's.
fn is_of_a_user(text: &str) -> bool {
    let found: Option<serde_json::Value> = serde_json::from_str(text).ok();
    found.is_some_and(|found| found["type"] == "authorized_user")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed expectation of a test is its failure
mod tests {
    use super::*;

    #[test]
    fn credentials_are_read_as_the_tools_write_them() {
        let text = "[default]\naws_access_key_id = A\naws_secret_access_key=B=C\n\
                    [other]\naws_access_key_id = D\n";
        let found = credentials_in(text);
        assert_eq!(found["aws_access_key_id"], "A");
        assert_eq!(found["aws_secret_access_key"], "B=C");
        assert_eq!(found.get("aws_session_token"), None);
        let found = credentials_in("[storage]\naccount = acme\nkey = a2V5==\n");
        assert_eq!((&*found["account"], &*found["key"]), ("acme", "a2V5=="));
    }

    /// What opening a URL says with this file of credentials.
    fn opened(url: &str, credentials: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("credentials");
        std::fs::write(&file, credentials).unwrap();
        let url = format!("{url}credentials={}", file.display());
        match Place::parse(&url).unwrap().open(true) {
            Ok(store) => store.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_store_of_azure_needs_an_account_and_a_key_or_a_signature() {
        for (url, file, told) in [
            ("az://c?", "key = a2V5", "names no storage account"),
            ("az://c?account=acme&", "account = acme", "no credentials"),
            ("az://c?account=acme&", "key = !", "no place for a copy"),
            ("az://c?account=acme&", "key = a2V5", "MicrosoftAzure"),
            ("az://c?", "account=acme\nkey=a2V5", "MicrosoftAzure"),
            (
                "az://c?account=acme&",
                "sas_token=sv=1&sig=x",
                "MicrosoftAzure",
            ),
        ] {
            let said = opened(url, file);
            assert!(said.contains(told), "{url} {file}: {said}");
        }
    }

    #[test]
    fn a_store_of_google_needs_a_file() {
        let account = r#"{"type": "service_account", "client_email": "a@b", "private_key": "",
            "private_key_id": "1", "disable_oauth": true}"#;
        let user = r#"{"type": "authorized_user", "client_id": "1", "client_secret": "2",
            "refresh_token": "3"}"#;
        for (file, told) in [
            ("no JSON", "no place for a copy"),
            (account, "GoogleCloudStorage"),
            (user, "GoogleCloudStorage"),
        ] {
            let said = opened("gs://b?", file);
            assert!(said.contains(told), "{file}: {said}");
        }
        assert!(is_of_a_user(user) && !is_of_a_user(account));
    }
}
