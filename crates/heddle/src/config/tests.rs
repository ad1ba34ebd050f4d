//! Who wins, and what is refused.

use std::path::Path;

use clap::{Args as _, FromArgMatches as _};
use heddle_api::offer::Mode;
use heddle_front::settings::{DeletedPoll, MissingVersion};

use super::*;

/// Parses `flags` as the command line of `heddle serve`, with a file of `text`.
fn load(text: &str, flags: &[&str]) -> anyhow::Result<Config> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("heddle.yaml");
    #[expect(clippy::disallowed_methods, reason = "a test's own file")]
    std::fs::write(&path, text).unwrap();
    // The tests must not depend on the environment they run in.
    let command =
        ConfigArgs::augment_args(clap::Command::new("serve")).mut_args(|arg| arg.env(None::<&str>));
    let path = path.display().to_string();
    let words = ["serve", "--config", &path]
        .into_iter()
        .chain(flags.iter().copied());
    let matches = command.try_get_matches_from(words).unwrap();
    let args = ConfigArgs::from_arg_matches(&matches).unwrap();
    Config::load(args, |id| matches.value_source(id))
}

#[test]
fn flags_win_over_the_file_and_the_file_over_defaults() {
    let config = load(
        "listen: 127.0.0.1:1\nlogFilter: debug\n",
        &["--listen", "127.0.0.1:2"],
    )
    .unwrap();
    insta::assert_snapshot!(config.print(), @r#"
    dataDir: "./heddle-data"  # default
    listen: "127.0.0.1:2"  # from a flag
    events: "127.0.0.1:4334"  # default
    eventsRequireIdentity: false  # default
    eventsClientCAFile: null  # default
    compat: {"bodyKibibytes":64,"repeatMinutes":10,"strict":false}  # default
    egressAllow: []  # default
    egressDeny: []  # default
    brokerClasses: ["heddle","MTChannelBasedBroker","ChannelBasedBroker"]  # default
    retentionHours: 72  # default
    retentionGibibytes: 10  # default
    eventsReserveMebibytes: null  # default
    backlogMebibytes: null  # default
    backlogHours: null  # default
    allowRemote: false  # default
    tlsNames: []  # default
    controllers: true  # default
    heartbeats: true  # default
    smokeMinutes: 10  # default
    edgeProbe: null  # default
    alertWebhook: null  # default
    ui: true  # default
    uiBase: ""  # default
    uiMask: []  # default
    logFilter: "debug"  # from the file
    logFormat: auto  # default
    shutdownGraceSeconds: 20  # default
    telemetry: {"otlpEndpoint":null}  # default
    osbNamespace: "default"  # default
    osbMissingVersion: "400"  # default
    osbDeletedPoll: succeeded  # default
    osbSyncWaitSeconds: 10  # default
    osbFastWaitSeconds: 0  # default
    osbInitialCatalogWaitSeconds: 60  # default
    osbAwaitingCatalogMax: 100  # default
    osbCatalogMapping: perService  # default
    osbProvisionOnlyOnce: false  # default
    "#);
}

#[test]
fn the_environment_stands_between_file_and_flags() {
    let mut config = Config::default();
    config.take_file(parse_file(Path::new("f"), "dataDir: /file\nlisten: 127.0.0.1:1\n").unwrap());
    let args = ConfigArgs {
        data_dir: Some("/env".into()),
        ..ConfigArgs::default()
    };
    config.take_args(args, |_| Origin::Environment);
    assert_eq!(
        (config.data_dir.as_path(), config.origin("dataDir")),
        (Path::new("/env"), Origin::Environment)
    );
    assert_eq!(config.origin("listen"), Origin::File);
}

#[test]
fn controllers_run_unless_the_file_or_a_flag_says_otherwise() {
    for (text, flags, controllers) in [
        ("", &[][..], true),
        ("controllers: false\n", &[], false),
        ("", &["--no-controllers"], false),
        ("controllers: false\n", &["--no-controllers=false"], true),
    ] {
        let config = load(text, flags).unwrap();
        assert_eq!(config.controllers, controllers, "{text:?} {flags:?}");
    }
}

#[test]
fn ranges_of_addresses_are_read_and_nonsense_is_refused() {
    let config = load(
        "egressAllow: [10.1.0.0/16]\negressDeny: ['::/0', 0.0.0.0/0]\n",
        &[],
    )
    .unwrap();
    let check = |address: &str| config.egress.check(address.parse().unwrap()).is_ok();
    assert_eq!(
        ["10.1.2.3", "10.2.0.1", "93.184.216.34"].map(check),
        [true, false, false]
    );
    let error = load("egressAllow: [example.com]\n", &[]).unwrap_err();
    assert!(
        format!("{error:#}").contains("no range of addresses"),
        "{error:#}"
    );
}

#[test]
fn what_is_hidden_is_read_and_nonsense_is_refused() {
    let config = load("uiMask: [/card/number, '/items/*/iban']\n", &[]).unwrap();
    let pointers: Vec<String> = (config.mask.pointers().iter())
        .map(ToString::to_string)
        .collect();
    assert_eq!(pointers, ["/card/number", "/items/*/iban"]);
    let error = load("uiMask: [$.card]\n", &[]).unwrap_err();
    assert!(
        format!("{error:#}").contains("no JSON pointer"),
        "{error:#}"
    );
}

#[test]
fn publishers_are_asked_on_any_address_that_others_can_reach() {
    for (text, asked) in [
        ("", false),
        ("eventsRequireIdentity: true\n", true),
        ("events: 0.0.0.0:1\nallowRemote: true\n", true),
        (
            "events: 0.0.0.0:1\nallowRemote: true\neventsRequireIdentity: false\n",
            true,
        ),
    ] {
        assert_eq!(
            load(text, &[]).unwrap().asks_publishers(),
            asked,
            "{text:?}"
        );
    }
}

#[test]
fn what_is_printed_can_be_loaded_again() {
    let text = "dataDir: 'odd: \"name\"'\nallowRemote: true\nlisten: '[::]:0'\nlogFormat: json\nshutdownGraceSeconds: 3\neventsClientCAFile: ca.pem\negressDeny: [10.0.0.0/8]\neventsReserveMebibytes: 0\nbacklogMebibytes: 500\nbacklogHours: 48\n";
    let config = load(text, &[]).unwrap();
    let again = load(&config.print(), &[]).unwrap();
    assert_eq!(
        (&again.data_dir, again.listen, again.shutdown_grace),
        (&config.data_dir, config.listen, config.shutdown_grace)
    );
}

#[test]
fn an_unknown_key_is_refused_by_name() {
    let error = load("listne: 127.0.0.1:1\n", &[]).unwrap_err();
    assert_eq!(crate::failure::exit_code(&error), 2);
    let text = format!("{error:#}");
    assert!(
        text.contains("heddle.yaml") && text.contains("listne") && text.contains("listen"),
        "{text}"
    );
}

#[test]
fn an_empty_file_changes_nothing() {
    for text in ["", "# nothing\n", "---\n"] {
        assert_eq!(load(text, &[]).unwrap().print(), Config::default().print());
    }
}

#[test]
fn a_reachable_listener_needs_the_flag_and_the_refusal_names_it() {
    for address in [
        "0.0.0.0:4333",
        "[::]:4333",
        "192.0.2.1:4333",
        "[::ffff:192.0.2.1]:1",
    ] {
        let error = load("", &["--listen", address]).unwrap_err();
        assert!(error.to_string().contains("--allow-remote"), "{error}");
        load("", &["--listen", address, "--allow-remote"]).unwrap();
    }
    for address in [
        "127.0.0.1:0",
        "127.9.9.9:1",
        "[::1]:1",
        "[::ffff:127.0.0.1]:1",
    ] {
        load("", &["--listen", address]).unwrap();
    }
}

#[test]
fn an_empty_collector_is_none_and_an_unknown_key_beside_it_is_refused() {
    for (text, flags) in [
        ("telemetry: {otlpEndpoint: ''}\n", &[][..]),
        ("telemetry:\n", &["--otlp-endpoint", ""]),
    ] {
        assert_eq!(load(text, flags).unwrap().otlp_endpoint, None);
    }
    let error = load("telemetry: {otelEndpoint: x}\n", &[]).unwrap_err();
    assert!(format!("{error:#}").contains("otelEndpoint"), "{error:#}");
}

#[cfg(not(feature = "otlp"))]
#[test]
fn a_collector_is_refused_by_a_build_that_cannot_send_to_it() {
    for (text, flags) in [
        (
            "telemetry: {otlpEndpoint: 'http://127.0.0.1:4318'}\n",
            &[][..],
        ),
        ("", &["--otlp-endpoint", "http://127.0.0.1:4318"]),
    ] {
        let error = load(text, flags).unwrap_err();
        assert_eq!(crate::failure::exit_code(&error), 2);
        let text = error.to_string();
        for told in [
            "127.0.0.1:4318",
            "--features otlp",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
        ] {
            assert!(text.contains(told), "{text}");
        }
    }
}

#[test]
fn how_platforms_are_answered_is_read_from_the_file_and_printed_so_that_it_can_be_read_again() {
    let text = "osbNamespace: tools\nosbMissingVersion: 412\nosbDeletedPoll: gone\nosbSyncWaitSeconds: 5\nosbInitialCatalogWaitSeconds: 7\nosbAwaitingCatalogMax: 0\nosbCatalogMapping: perApplication\n";
    let config = load(text, &[]).unwrap();
    assert_eq!(config.osb.namespace, "tools");
    assert_eq!(
        config.osb.missing_version,
        MissingVersion::PreconditionFailed
    );
    assert_eq!(config.osb.deleted_poll, DeletedPoll::Gone);
    assert_eq!(config.osb.sync_wait, Duration::from_secs(5));
    assert_eq!(config.osb.initial_catalog_wait, Duration::from_secs(7));
    assert_eq!(config.osb.awaiting_catalog_max, 0);
    assert_eq!(config.catalog.mode, Mode::PerApplication);
    let again = load(&config.print(), &[]).unwrap();
    assert_eq!((again.osb, again.catalog), (config.osb, config.catalog));
    let wrong = load("osbMissingVersion: 500\n", &[]);
    assert!(wrong.is_err());
}

#[test]
fn a_backlog_without_any_room_is_refused_by_name() {
    let error = load("backlogHours: 0\n", &[]).unwrap_err();
    let text = format!("{error:#}");
    assert!(text.contains("nonzero"), "{text}");
}

#[test]
fn an_endpoint_of_the_environment_that_cannot_be_used_is_a_warning_and_one_of_a_flag_an_error() {
    let args = || ConfigArgs {
        otlp_endpoint: Some("ftp://collector".to_owned()),
        ..ConfigArgs::default()
    };
    let mut config = Config::default();
    let text = "telemetry: {otlpEndpoint: 'http://127.0.0.1:4318'}\n";
    config.take_file(parse_file(Path::new("f"), text).unwrap());
    config.take_args(args(), |_| Origin::Environment);
    assert_eq!(
        config.otlp_endpoint.as_deref(),
        Some("http://127.0.0.1:4318")
    );
    assert_eq!(config.warnings.len(), 1, "{:?}", config.warnings);
    assert!(config.warnings[0].starts_with("OTEL_EXPORTER_OTLP_ENDPOINT is ignored: "));
    let mut config = Config::default();
    config.take_args(args(), |_| Origin::Flag);
    assert!(config.check().is_err() && config.warnings.is_empty());
}
