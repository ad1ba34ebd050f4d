//! The bundles that come with heddle, and the one that a new author begins with: packed, unpacked and run.

use std::path::{Path, PathBuf};

use heddle_api::action::{Action, Outcome, Run, RunEnd};
use heddle_bundles::pack;
use heddle_bundles::sandbox::Program;
use serde_json::{Map, Value, json};

use crate::stage::{Stage, busybox, failed_with, run_with, succeeded};
use crate::{Promise, promises};

pub(crate) const PROMISES: &[Promise] = promises![
    a_new_bundle_works,
    sqlite_makes_hands_out_changes_and_archives_a_database,
    a_shared_secret_is_made_derived_rotated_and_removed,
];

/// A bundle, unpacked, with a runner.
struct Example {
    stage: Stage,
    program: Program,
}

impl Example {
    fn named(name: &str) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../bundles")
            .join(name);
        assert_eq!(
            pack::lint(&source)
                .iter()
                .filter(|f| !f.message.contains("busybox"))
                .count(),
            0
        );
        let copy = tempfile::tempdir().unwrap();
        copy_tree(&source, copy.path());
        Self::of(copy.path())
    }

    /// With the busybox of the suite, wherever that is.
    fn of(directory: &Path) -> Self {
        let settings = json!({"include": [{"from": busybox(), "to": "bin/busybox"}]});
        std::fs::write(directory.join("heddle-bundle.yaml"), settings.to_string()).unwrap();
        let image = pack::image(directory).unwrap();
        let mut stage = Stage::with("exit 0");
        stage.root = stage.directory.path().join("unpacked");
        for layer in &image.layers {
            let reader = flate2::read::GzDecoder::new(&layer[..]);
            tar::Archive::new(reader).unpack(&stage.root).unwrap();
        }
        let config: Value = serde_json::from_slice(&image.config).unwrap();
        let words = |name: &str| serde_json::from_value(config["config"][name].clone()).unwrap();
        let program = Program {
            entrypoint: words("Entrypoint"),
            env: words("Env"),
            ..Program::default()
        };
        Self { stage, program }
    }

    fn act(&self, action: Action, variables: Value) -> (RunEnd, Option<Map<String, Value>>) {
        let asked = Run {
            action,
            ..run_with(variables)
        };
        self.stage
            .runner
            .start(&asked, &self.stage.root, &self.program)
            .unwrap();
        let end = self.stage.end(&asked.id);
        (end, self.stage.runner.credentials(&asked.id).unwrap())
    }

    fn did(&self, action: Action, variables: Value) -> Map<String, Value> {
        let (end, credentials) = self.act(action, variables);
        succeeded(&end);
        credentials.unwrap_or_default()
    }

    fn data(&self, name: &str) -> PathBuf {
        self.stage.data(name)
    }
}

fn copy_tree(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            std::fs::create_dir(&target).unwrap();
            copy_tree(&entry.path(), &target);
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(entry.path()).unwrap(), target).unwrap();
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn a_new_bundle_works() {
    let directory = tempfile::tempdir().unwrap();
    let bundle = directory.path().join("bundle");
    pack::init(&bundle, "greeter").unwrap();
    let example = Example::of(&bundle);
    example.did(Action::Provision, json!({"greeting": "good day"}));
    let credentials = example.did(Action::Bind, json!({"greeting": "good day"}));
    assert_eq!(credentials["greeting"], "good day");
    example.did(Action::Unbind, json!({}));
    example.did(Action::Deprovision, json!({}));
}

fn sqlite_makes_hands_out_changes_and_archives_a_database() {
    let example = Example::named("sqlite");
    let variables = |more: Value| {
        let mut all =
            json!({"database": "orders", "journal": "delete", "on_deprovision": "archive"});
        all.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        all
    };
    example.did(Action::Provision, variables(json!({})));
    let header = || std::fs::read(example.data("orders.db")).unwrap();
    assert!(header().starts_with(b"SQLite format 3\0"));
    assert_eq!((header().len(), header()[18], header()[19]), (4096, 1, 1));

    let path = example.data("orders.db").display().to_string();
    let credentials = example.did(Action::Bind, variables(json!({"mode": "ro"})));
    assert_eq!(credentials["path"], path.as_str());
    assert_eq!(credentials["uri"], format!("file:{path}?mode=ro"));

    example.did(Action::Update, variables(json!({"journal": "wal"})));
    assert_eq!((header()[18], header()[19]), (2, 2));
    let (end, _) = example.act(Action::Unbind, variables(json!({})));
    assert_eq!(end.outcome, Outcome::NothingToDo);

    let (end, _) = example.act(
        Action::Provision,
        variables(json!({"database": "../escape"})),
    );
    assert!(failed_with(&end).1.contains("name"), "{end:?}");

    example.did(Action::Deprovision, variables(json!({})));
    example.stage.runner.forget_instance("instance").unwrap();
    let archived = example
        .stage
        .directory
        .path()
        .join("sandbox/archives/instance/orders.db");
    assert!(archived.is_file());

    example.did(Action::Provision, variables(json!({})));
    example.did(
        Action::Deprovision,
        variables(json!({"on_deprovision": "delete"})),
    );
    assert!(!example.data("orders.db").exists() && !example.data("archive").exists());
}

fn a_shared_secret_is_made_derived_rotated_and_removed() {
    let example = Example::named("shared-secret");
    let bind = |binding: &str| {
        let variables = json!({"_apb_service_binding_id": binding, "bytes": 32});
        example.did(Action::Bind, variables)["secret"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    example.did(Action::Provision, json!({"bytes": 32, "generation": 1}));
    let first = bind("one");
    assert_eq!(
        (first.len(), first == bind("one"), first == bind("two")),
        (64, true, false)
    );
    // A repeated action changes nothing, and an update without a new generation neither.
    example.did(Action::Provision, json!({"bytes": 32, "generation": 1}));
    example.did(Action::Update, json!({"bytes": 32, "generation": 1}));
    assert_eq!(bind("one"), first);
    example.did(Action::Update, json!({"bytes": 32, "generation": 2}));
    assert_ne!(bind("one"), first);
    example.did(Action::Deprovision, json!({}));
    assert!(!example.data("secret").exists());
    let (end, _) = example.act(Action::Bind, json!({"_apb_service_binding_id": "one"}));
    assert!(failed_with(&end).1.contains("no secret"), "{end:?}");
}
