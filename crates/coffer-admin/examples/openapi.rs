//! Prints the API's description:
//! `cargo run -q -p coffer-admin --example openapi > docs/openapi.json`

fn main() {
    print!("{}", coffer_admin::openapi_json());
}
