//! What is made once stays, and what a person may have broken is named.

use heddle_rt::MemoryVfs;

use super::*;

const DIR: &str = "data";

fn deps() -> IdentityDeps {
    let vfs = Arc::new(MemoryVfs::new());
    vfs.create_dir_all(Path::new(DIR)).unwrap();
    IdentityDeps {
        vfs,
        clock: Clock::system(),
        chance: Chance::seeded(7),
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn text(deps: &IdentityDeps, name: &str) -> String {
    String::from_utf8(deps.vfs.read(&Path::new(DIR).join(name)).unwrap()).unwrap()
}

fn start(deps: &IdentityDeps, listener: &str) -> Identity {
    let identity = Identity::open(deps.clone(), Path::new(DIR)).unwrap();
    identity
        .publish(address(listener), address("127.0.0.1:4334"))
        .unwrap();
    identity
}

#[test]
fn credentials_are_made_once_and_only_the_address_follows() {
    let deps = deps();
    let first = start(&deps, "127.0.0.1:4333");
    let files = ["pki/ca.key", "pki/ca.crt", "osb-credentials.json"].map(|name| text(&deps, name));
    let kubeconfig = text(&deps, "admin.kubeconfig");
    let second = start(&deps, "127.0.0.1:4333");
    assert_eq!(text(&deps, "admin.kubeconfig"), kubeconfig);
    assert_eq!(first.admin_token(), second.admin_token());

    start(&deps, "[::1]:9");
    let moved = text(&deps, "admin.kubeconfig");
    assert_eq!(
        moved,
        kubeconfig.replace("https://127.0.0.1:4333", "https://[::1]:9")
    );
    assert_eq!(
        files,
        ["pki/ca.key", "pki/ca.crt", "osb-credentials.json"].map(|name| text(&deps, name))
    );
}

#[test]
fn endpoints_name_the_plain_address_on_loopback_and_the_secure_one_elsewhere() {
    let deps = deps();
    start(&deps, "127.0.0.1:4333");
    assert_eq!(
        text(&deps, "endpoints.json"),
        "{\n  \"control\": \"http://127.0.0.1:4333\",\n  \"events\": \"http://127.0.0.1:4334\"\n}\n"
    );
    start(&deps, "0.0.0.0:4333");
    assert_eq!(
        text(&deps, "endpoints.json"),
        "{\n  \"control\": \"https://127.0.0.1:4333\",\n  \"events\": \"http://127.0.0.1:4334\"\n}\n"
    );
}

#[test]
fn the_address_of_an_earlier_run_is_gone_before_the_next_is_ready() {
    let deps = deps();
    start(&deps, "127.0.0.1:4333");
    Identity::open(deps.clone(), Path::new(DIR)).unwrap();
    assert!(
        !deps
            .vfs
            .exists(&Path::new(DIR).join("endpoints.json"))
            .unwrap()
    );
}

#[test]
fn what_people_add_to_the_kubeconfig_stays() {
    let deps = deps();
    start(&deps, "127.0.0.1:1");
    let edited = text(&deps, "admin.kubeconfig").replace("namespace: default", "namespace: team-a");
    deps.vfs
        .write_atomic(
            &Path::new(DIR).join("admin.kubeconfig"),
            edited.as_bytes(),
            0o600,
        )
        .unwrap();
    start(&deps, "127.0.0.1:2");
    let after = text(&deps, "admin.kubeconfig");
    assert!(
        after.contains("namespace: team-a") && after.contains("https://127.0.0.1:2"),
        "{after}"
    );
}

#[test]
fn a_removed_kubeconfig_means_a_new_token() {
    let deps = deps();
    let first = start(&deps, "127.0.0.1:1");
    deps.vfs
        .remove(&Path::new(DIR).join("admin.kubeconfig"))
        .unwrap();
    assert_ne!(
        first.admin_token(),
        start(&deps, "127.0.0.1:1").admin_token()
    );
}

#[test]
fn damaged_files_are_named_with_the_remedy() {
    for (name, damage) in [
        ("admin.kubeconfig", "users: []"),
        ("osb-credentials.json", "{}"),
        ("pki/ca.key", "no key"),
    ] {
        let deps = deps();
        start(&deps, "127.0.0.1:1");
        deps.vfs
            .write_atomic(&Path::new(DIR).join(name), damage.as_bytes(), 0o600)
            .unwrap();
        let opened = Identity::open(deps, Path::new(DIR))
            .and_then(|identity| identity.publish(address("127.0.0.1:1"), address("127.0.0.1:2")));
        let error = format!("{:#}", opened.unwrap_err());
        assert!(error.contains(name), "{error}");
        assert!(!error.contains("BEGIN"), "no key may be shown: {error}");
    }
}
