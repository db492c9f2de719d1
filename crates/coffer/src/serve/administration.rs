//! The administration's routes as one connection may use them.

use std::net::IpAddr;
use std::pin::Pin;

use coffer_admin::{Answer, Peer, Routes};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::Service;

use crate::connection::proxies::Proxies;

/// The routes, for one connection.
#[derive(Clone)]
pub struct AdministrationService {
    routes: Routes,
    address: IpAddr,
    /// All connections that count are in use: this one may see how the server is, and nothing else.
    is_probe: bool,
    proxies: Proxies,
}

impl AdministrationService {
    /// The routes for a client at this address.
    pub fn new(routes: Routes, address: IpAddr, is_probe: bool, proxies: Proxies) -> Self {
        Self {
            routes,
            address,
            is_probe,
            proxies,
        }
    }
}

impl Service<Request<Incoming>> for AdministrationService {
    type Response = Response<Answer>;
    type Error = std::convert::Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Answer>, Self::Error>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let address = self
            .proxies
            .client_of_request(request.headers(), self.address);
        let peer = Peer::Remote { address };
        let routes = if self.is_probe {
            self.routes.for_probes()
        } else {
            self.routes.clone()
        };
        Box::pin(routes.answer(request, peer))
    }
}
