//! One bucket of a coffer, as a server of its own.

use crate::contenders::coffer::Coffer;
use crate::contenders::{Endpoint, Object, Receives, Serves};
use crate::error::Result;
use crate::load_client::connection::Request;
use crate::load_client::load::Client;
use crate::load_client::response::Expected;

/// A bucket, and the server that has it.
#[derive(Clone, Copy)]
pub struct Bucket<'a> {
    /// The server.
    pub coffer: &'a Coffer,
    /// The bucket.
    pub name: &'a str,
    /// Whether it keeps versions: what is discarded is then looked up version by version.
    pub has_versions: bool,
}

impl<'a> Bucket<'a> {
    /// A bucket without versions.
    pub fn of(coffer: &'a Coffer, name: &'a str) -> Self {
        Self {
            coffer,
            name,
            has_versions: false,
        }
    }

    fn object(&self, method: &str, object: &Object, body: bool, expected: Expected) -> Request {
        let path = format!("/{}/{}", self.name, object.name);
        let body = body.then_some(object.content);
        self.coffer.request(method, &path, "", body, expected)
    }

    /// Removes every version of the objects whose names begin so: deletions without a version's id
    /// would leave them all.
    fn discard_versions(&self, client: &Client, prefix: &str) -> Result<()> {
        let mut after = None;
        let mut doomed = Vec::new();
        loop {
            let listing = self
                .coffer
                .s3()
                .list_versions(self.name, prefix, after.as_ref());
            let page = client.wait(listing)?;
            doomed.extend(page.versions.into_iter().map(|version| {
                let path = format!("/{}/{}", self.name, version.object.key);
                (path, format!("versionId={}", version.version_id))
            }));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let delete = |(path, query): (String, String)| {
            { self.coffer }.request("DELETE", &path, &query, None, Expected::Success)
        };
        self.coffer.each(client, doomed.into_iter().map(delete))
    }
}

impl Serves for Bucket<'_> {
    fn endpoint(&self) -> &Endpoint {
        self.coffer.endpoint()
    }

    fn get(&self, object: &Object) -> Request {
        self.object("GET", object, false, Expected::Body(object.content))
    }

    fn store(&self, client: &Client, objects: &[Object]) -> Result<()> {
        let puts = objects.iter().map(|object| self.put(object));
        self.coffer.each(client, puts)
    }

    fn discard(&self, client: &Client, objects: &[Object]) -> Result<()> {
        if self.has_versions
            && let Some((tag, _)) = objects
                .first()
                .and_then(|first| first.name.rsplit_once('-'))
        {
            return self.discard_versions(client, &format!("{tag}-"));
        }
        let delete = |object| self.object("DELETE", object, false, Expected::Success);
        self.coffer.each(client, objects.iter().map(delete))
    }
}

impl Receives for Bucket<'_> {
    fn endpoint(&self) -> &Endpoint {
        self.coffer.endpoint()
    }

    fn put(&self, object: &Object) -> Request {
        self.object("PUT", object, true, Expected::Success)
    }

    fn check(&self, client: &Client, objects: &[Object]) -> Result<()> {
        let get = |object: &Object| {
            self.object("GET", object, false, Expected::WholeBody(object.content))
        };
        self.coffer.each(client, objects.iter().map(get))
    }

    fn discard(&self, client: &Client, objects: &[Object]) -> Result<()> {
        Serves::discard(self, client, objects)
    }
}

/// Its first bucket.
impl Serves for Coffer {
    fn endpoint(&self) -> &Endpoint {
        self.endpoint()
    }

    fn get(&self, object: &Object) -> Request {
        Bucket::of(self, Self::BUCKET).get(object)
    }

    fn store(&self, client: &Client, objects: &[Object]) -> Result<()> {
        Bucket::of(self, Self::BUCKET).store(client, objects)
    }

    fn discard(&self, client: &Client, objects: &[Object]) -> Result<()> {
        Serves::discard(&Bucket::of(self, Self::BUCKET), client, objects)
    }
}

/// Its first bucket.
impl Receives for Coffer {
    fn endpoint(&self) -> &Endpoint {
        self.endpoint()
    }

    fn put(&self, object: &Object) -> Request {
        Bucket::of(self, Self::BUCKET).put(object)
    }

    fn check(&self, client: &Client, objects: &[Object]) -> Result<()> {
        Bucket::of(self, Self::BUCKET).check(client, objects)
    }

    fn discard(&self, client: &Client, objects: &[Object]) -> Result<()> {
        Serves::discard(self, client, objects)
    }
}
