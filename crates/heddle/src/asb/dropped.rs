//! Keys of the old broker that mean nothing here, each with what stands in for it.

/// What became of a key, and what to do instead.
pub(super) fn text(key: &str) -> String {
    let known = KEYS.iter().find(|(known, _)| *known == key);
    match known {
        Some((_, instead)) => format!("is dropped: {instead}"),
        None => "is dropped: nobody knows this key".to_owned(),
    }
}

const STATE: &str = "state is kept in the data directory; `heddle serve --data-dir DIRECTORY`";
const ISOLATION: &str =
    "actions run in a sandbox on this machine; `spec.actions` of a Registry says what they may use";
const CERTIFICATE: &str =
    "heddle makes its own certificate; `heddle serve --tls-name NAME` adds a name to it";

const KEYS: &[(&str, &str)] = &[
    (
        "registry.namespaces",
        "only registries of type local_openshift had namespaces",
    ),
    (
        "registry.runner",
        "actions run with the bundle's own image; only charts of type helm need a runner",
    ),
    ("dao.type", STATE),
    ("dao.etcd_host", STATE),
    ("dao.etcd_port", STATE),
    ("dao.etcd_ca_file", STATE),
    ("dao.etcd_client_cert", STATE),
    ("dao.etcd_client_key", STATE),
    (
        "log.logfile",
        "log lines go to standard error; send them to a file from there",
    ),
    ("log.stdout", "log lines go to standard error"),
    ("log.level", "use `heddle serve --log debug`"),
    (
        "log.color",
        "use `heddle serve --log-format human`; colours appear on a terminal only",
    ),
    ("openshift.host", ISOLATION),
    ("openshift.ca_file", ISOLATION),
    ("openshift.bearer_token_file", ISOLATION),
    (
        "openshift.image_pull_policy",
        "an image is fetched once, by its digest, and kept while an instance needs it",
    ),
    ("openshift.namespace", ISOLATION),
    ("openshift.sandbox_role", ISOLATION),
    (
        "openshift.keep_namespace",
        "what an action said is in its log, which is kept",
    ),
    (
        "openshift.keep_namespace_on_error",
        "what an action said is in its log, which is kept",
    ),
    (
        "broker.dev_broker",
        "a Registry of type push takes what developers push",
    ),
    (
        "broker.launch_apb_on_bind",
        "bind always runs the bundle's action; one that has none hands out what provision gave",
    ),
    (
        "broker.bootstrap_on_startup",
        "registries are always read at the start, and nobody waits for it",
    ),
    ("broker.recovery", "operations always go on after a restart"),
    ("broker.output_request", "use `heddle serve --log debug`"),
    ("broker.ssl_cert", CERTIFICATE),
    ("broker.ssl_cert_key", CERTIFICATE),
    (
        "broker.auto_escalate",
        "platforms answer for their users; each platform has credentials of its own",
    ),
    (
        "broker.user_auth_rule",
        "platforms answer for their users; each platform has credentials of its own",
    ),
    (
        "broker.dashboard_redirector",
        "the address that an action names is handed out as it is",
    ),
    (
        "broker.auth",
        "platforms use the credentials of osb-credentials.json, or of Secrets labelled heddle.dev/osb-credentials",
    ),
    ("secrets", "give the values as parameters of the instance"),
];
