//! Where a client finds its access key, the server's address and whom to trust: AWS's files and
//! variables of the environment, and a data folder of coffer's.

mod ini;

mod environment;

mod credentials;

mod settings;

pub use self::credentials::Credentials;
pub(crate) use self::settings::USUAL_REGION;
pub use self::settings::{Settings, Wanted};
