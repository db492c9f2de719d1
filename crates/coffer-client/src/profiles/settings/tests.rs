use super::*;

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(home.0.path().join(".aws")).unwrap();
        home.write(
            ".aws/credentials",
            "[default]\naws_access_key_id = D\naws_secret_access_key = s\n\
             [p]\naws_access_key_id = P\naws_secret_access_key = s\naws_session_token = t\n",
        );
        home.write(
            ".aws/config",
            "[default]\nregion = r1\nendpoint_url = https://d\n[profile p]\nservices = v\n\
             ca_bundle = /p.pem\n[services v]\ns3 =\n  endpoint_url = https://p\n\
             [profile role]\nrole_arn = arn\nendpoint_url = https://r\n",
        );
        home
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.path().join(name), text).unwrap();
    }

    /// A server's data folder, with an access key and an authority.
    fn with_data_folder(&self) -> PathBuf {
        let data = self.0.path().join("data");
        std::fs::create_dir_all(data.join("tls")).unwrap();
        self.write(
            "data/credentials",
            "[default]\naws_access_key_id = O\naws_secret_access_key = s\n",
        );
        self.write("data/tls/ca.pem", "");
        data
    }

    fn find(&self, wanted: &Wanted<'_>, set: &[(&str, &str)]) -> Result<Settings, ClientError> {
        let home = self.0.path().to_str().unwrap();
        let variable = |name: &str| match name {
            "HOME" => Some(home.to_owned()),
            name => { set.iter() }
                .find(|(set, _)| *set == name)
                .map(|(_, value)| (*value).to_owned()),
        };
        Settings::find_in(wanted, &Environment(&variable))
    }
}

const KEY: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "E"), ("AWS_SECRET_ACCESS_KEY", "s")];

#[test]
fn what_was_typed_comes_first_then_the_environment_then_the_profile() {
    let home = Home::new();
    let found = home.find(&Wanted::default(), &[]).unwrap();
    assert_eq!(found.endpoint, "https://d");
    assert_eq!(found.credentials.access_key_id, "D");
    assert_eq!((found.region.as_str(), found.ca), ("r1", None));
    let set = [KEY[0], KEY[1], ("AWS_ENDPOINT_URL", "https://e")];
    let found = home.find(&Wanted::default(), &set).unwrap();
    assert_eq!(found.endpoint, "https://e");
    assert_eq!(found.credentials.access_key_id, "E");
    let typed = Wanted {
        endpoint: Some("https://t"),
        profile: Some("p"),
        ..Wanted::default()
    };
    let found = home.find(&typed, &set).unwrap();
    assert_eq!(found.endpoint, "https://t");
    assert_eq!(found.credentials.access_key_id, "P");
    assert_eq!(found.credentials.session_token.unwrap().as_str(), "t");
    assert_eq!(found.ca, Some(PathBuf::from("/p.pem")));
}

#[test]
fn a_profile_that_the_environment_names() {
    let home = Home::new();
    let found = home.find(&Wanted::default(), &[("AWS_PROFILE", "p")]);
    let found = found.unwrap();
    assert_eq!(found.endpoint, "https://p");
    assert_eq!(found.credentials.access_key_id, "P");
}

#[test]
fn a_data_folder_has_key_and_authority() {
    let home = Home::new();
    let data = home.with_data_folder();
    let wanted = Wanted {
        data: Some(&data),
        ..Wanted::default()
    };
    let found = home.find(&wanted, &KEY).unwrap();
    assert_eq!(found.credentials.access_key_id, "O");
    assert_eq!(found.ca, Some(data.join("tls/ca.pem")));
    let found = home.find(&wanted, &[("AWS_PROFILE", "p")]).unwrap();
    assert_eq!(found.credentials.access_key_id, "O");
    // It is used in place of the variables; what was typed is used before it.
    let set = [("AWS_CA_BUNDLE", "/e.pem")];
    let ca = |wanted: &Wanted<'_>| home.find(wanted, &set).unwrap().ca;
    assert_eq!(ca(&wanted), Some(data.join("tls/ca.pem")));
    let typed = Wanted {
        ca: Some(Path::new("/t.pem")),
        ..wanted
    };
    assert_eq!(ca(&typed), Some(PathBuf::from("/t.pem")));
    assert_eq!(ca(&Wanted::default()), Some(PathBuf::from("/e.pem")));
    let source = Wanted {
        is_source: true,
        ..Wanted::default()
    };
    assert_eq!(ca(&source), None);
    let wanted = Wanted {
        data_endpoint: Some("https://127.0.0.1:1"),
        ..wanted
    };
    // One server is meant as a whole: the address goes with the key.
    let set = [KEY[0], KEY[1], ("AWS_ENDPOINT_URL", "https://e")];
    let found = home.find(&wanted, &set).unwrap();
    assert_eq!(found.endpoint, "https://127.0.0.1:1");
    assert_eq!(found.credentials.access_key_id, "O");
    let typed = Wanted {
        profile: Some("p"),
        ..wanted
    };
    assert_eq!(home.find(&typed, &set).unwrap().endpoint, "https://p");
    let typed = Wanted {
        endpoint: Some("https://t"),
        ..wanted
    };
    assert_eq!(home.find(&typed, &set).unwrap().endpoint, "https://t");
}

#[test]
fn a_data_folder_that_was_not_named_counts_where_nothing_says_an_address() {
    let home = Home::new();
    let data = home.with_data_folder();
    let wanted = Wanted {
        data: Some(&data),
        data_endpoint: Some("https://127.0.0.1:1"),
        is_data_implied: true,
        ..Wanted::default()
    };
    let found = home.find(&wanted, &[]).unwrap();
    assert_eq!(found.endpoint, "https://d");
    assert_eq!(found.credentials.access_key_id, "D");
    assert_eq!(found.ca, None);
    std::fs::remove_file(home.0.path().join(".aws/config")).unwrap();
    let found = home.find(&wanted, &[]).unwrap();
    assert_eq!(found.endpoint, "https://127.0.0.1:1");
    assert_eq!(found.credentials.access_key_id, "O");
    assert_eq!(found.ca, Some(data.join("tls/ca.pem")));
    // The key of a subject, with the server that is here.
    let found = home.find(&wanted, &KEY).unwrap();
    assert_eq!(found.endpoint, "https://127.0.0.1:1");
    assert_eq!(found.credentials.access_key_id, "E");
    assert_eq!(found.ca, Some(data.join("tls/ca.pem")));
    let elsewhere = [("AWS_ENDPOINT_URL", "https://e")];
    let found = home.find(&wanted, &elsewhere).unwrap();
    assert_eq!(found.endpoint, "https://e");
    assert_eq!(found.credentials.access_key_id, "D");
}

#[test]
fn a_data_folder_without_a_key_takes_one_from_elsewhere() {
    let home = Home::new();
    let data = home.0.path().join("restored");
    std::fs::create_dir(&data).unwrap();
    let wanted = Wanted {
        data: Some(&data),
        data_endpoint: Some("https://127.0.0.1:1"),
        ..Wanted::default()
    };
    let found = home.find(&wanted, &KEY).unwrap();
    assert_eq!(found.endpoint, "https://127.0.0.1:1");
    assert_eq!(found.credentials.access_key_id, "E");
    let found = home.find(&wanted, &[("AWS_PROFILE", "p")]).unwrap();
    assert_eq!(found.credentials.access_key_id, "P");
    let told = home.find(&wanted, &[]).unwrap_err().to_string();
    assert!(
        told.contains("restored") && told.contains("set AWS_ACCESS_KEY_ID"),
        "{told}"
    );
}

#[test]
fn what_is_missing_is_told_with_what_to_do() {
    let home = Home::new();
    let role = home.find(&Wanted::default(), &[("AWS_PROFILE", "role")]);
    let told = role.unwrap_err().to_string();
    assert!(
        told.contains("role_arn") && told.contains("aws configure"),
        "{told}"
    );
    let keyless = Home::new();
    keyless.write(".aws/credentials", "");
    let none = keyless.find(&Wanted::default(), &[]);
    let told = none.unwrap_err().to_string();
    let expected = "no access key was found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or";
    assert!(told.starts_with(expected), "{told}");
    for place in [
        "[default]",
        "~/.aws/credentials",
        "--data DIR",
        "./coffer-data",
    ] {
        assert!(told.contains(place), "{told}");
    }
    let none = home.find(&Wanted::default(), &[("AWS_PROFILE", "none")]);
    let told = none.unwrap_err().to_string();
    assert!(told.contains("there is no such profile"), "{told}");
    home.write(".aws/config", "[profile empty]\nregion = r\n");
    let none = home.find(&Wanted::default(), &[("AWS_PROFILE", "empty")]);
    let told = none.unwrap_err().to_string();
    assert!(told.contains("AWS_ACCESS_KEY_ID"), "{told}");
    for (half, other) in [(KEY[0], KEY[1]), (KEY[1], KEY[0])] {
        let told = home.find(&Wanted::default(), &[half]).unwrap_err();
        let told = told.to_string();
        let expected = format!("{}: is set without {}: set both", half.0, other.0);
        assert!(told.contains(&expected), "{told}");
        // What was typed is used before it.
        let typed = Wanted {
            endpoint: Some("https://t"),
            profile: Some("p"),
            ..Wanted::default()
        };
        assert!(home.find(&typed, &[half]).is_ok());
    }
    std::fs::remove_file(home.0.path().join(".aws/config")).unwrap();
    let told = home.find(&Wanted::default(), &[]).unwrap_err().to_string();
    assert!(
        told.starts_with("--endpoint: ") && told.contains("AWS_ENDPOINT_URL"),
        "{told}"
    );
}
