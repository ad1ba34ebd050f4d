//! What the catalog promises on a real API server, with the controllers beside it.

use std::future::Future;

use heddle_api::application::Application;
use heddle_api::offer::Mode;
use heddle_api::{ApplicationMapping, ServiceInstance};
use heddle_front::catalog::{self, Coding, Document, Level, LiveOffers, Rules};
use heddle_rt::Chance;
use serde_json::{Value, json};

use crate::world::{self, Users};

fn tell<F: Future<Output = ()>>(story: impl FnOnce(Users) -> F) {
    world::tell(|_| (), |users, ()| story(users));
}

impl Users {
    async fn application(&self, name: &str, services: &[(&str, &str)]) {
        let services: Vec<Value> = services
            .iter()
            .map(|(id, name)| {
                json!({
                    "id": id, "name": name, "displayName": id, "description": id, "providerDisplayName": "acme",
                    "entries": [{"type": "Events"}],
                })
            })
            .collect();
        let spec = json!({"services": services});
        self.apply::<Application>("", name, spec).await;
    }

    /// After everything has come to rest: each rejected service with the reason and what is said about it.
    async fn rejected(&self, application: &str) -> Vec<(String, String, String)> {
        self.rest().await;
        let found = self.api::<Application>("").get(application).await.unwrap();
        let rejected = found.data["status"]["rejectedServices"].clone();
        let text = |service: &Value, key: &str| service[key].as_str().unwrap().to_owned();
        let rejected = rejected.as_array().cloned().unwrap_or_default();
        rejected
            .iter()
            .map(|service| {
                let (id, reason) = (text(service, "id"), text(service, "reason"));
                (id, reason, text(service, "message"))
            })
            .collect()
    }

    fn offers(&self, seed: u64) -> (LiveOffers, impl Future<Output = ()> + use<>) {
        let options =
            catalog::Options::new(self.clock.clone(), Chance::seeded(seed), Rules::default());
        catalog::start(self.client.clone(), options)
    }
}

fn ids(document: &Document) -> Vec<String> {
    let document: Value = serde_json::from_slice(&document.bytes).unwrap();
    let services = document["services"].as_array().unwrap().iter();
    services
        .map(|service| service["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_younger_application_is_marked_while_an_older_one_has_its_id_or_name() {
    tell(|users| async move {
        // By name the younger would come first: age decides.
        users
            .application("zoo", &[("1", "orders"), ("2", "stock")])
            .await;
        users.rest().await;
        users
            .application("ant", &[("1", "other"), ("3", "Stock"), ("4", "prices")])
            .await;
        let rejected = users.rejected("ant").await;
        let [(one, id_taken, whose), (three, name_taken, _)] = &rejected[..] else {
            panic!("two are rejected: {rejected:?}");
        };
        assert_eq!((one.as_str(), id_taken.as_str()), ("1", "IdTaken"));
        assert_eq!((three.as_str(), name_taken.as_str()), ("3", "NameTaken"));
        assert!(whose.contains("Application zoo"), "{whose}");
        assert!(users.rejected("zoo").await.is_empty());

        // The older gives one up, and then goes: the marks go with it, with nobody touching the younger.
        users.application("zoo", &[("1", "orders")]).await;
        let rejected = users.rejected("ant").await;
        assert!(
            matches!(&rejected[..], [(id, ..)] if id == "1"),
            "{rejected:?}"
        );
        users.delete::<Application>("", "zoo").await;
        assert!(users.rejected("ant").await.is_empty());

        // Who is made again is the younger one.
        users.application("zoo", &[("1", "orders")]).await;
        assert!(users.rejected("ant").await.is_empty());
        assert_eq!(users.rejected("zoo").await[0].1, "IdTaken");
    });
}

#[test]
fn the_catalog_follows_what_is_written_and_agrees_with_what_applications_say() {
    tell(|users| async move {
        let (offers, run) = users.offers(3);
        let story = async {
            offers.ready().await;
            assert!(offers.catalog().offerings.is_empty());
            let read = |namespace| ids(&offers.document(namespace, Level::V2_17, Coding::Plain));
            users
                .application("shop", &[("a", "orders"), ("b", "stock")])
                .await;
            users.rest().await;
            assert_eq!(read(None), ["a", "b"]);
            assert_eq!(read(Some("team-a")), [""; 0]);

            let enabled = json!({"services": [{"id": "b"}]});
            users
                .apply::<ApplicationMapping>("team-a", "shop", enabled)
                .await;
            let services = [("a", "customers"), ("c", "orders"), ("d", "leads")];
            users.application("crm", &services).await;
            let rejected = users.rejected("crm").await;
            let rejected: Vec<&str> = rejected.iter().map(|(id, ..)| id.as_str()).collect();
            assert_eq!(rejected, ["a", "c"]);
            assert_eq!(read(None), ["d", "a", "b"], "by name: leads, orders, stock");
            assert_eq!(read(Some("team-a")), ["b"]);

            users.delete::<Application>("", "shop").await;
            assert!(users.rejected("crm").await.is_empty());
            assert_eq!(
                read(None),
                ["a", "d", "c"],
                "by name: customers, leads, orders"
            );
            assert_eq!(read(Some("team-a")), [""; 0]);
        };
        tokio::select! {
            () = story => {}
            () = run => unreachable!("it runs for ever"),
        }
    });
}

#[test]
fn two_fronts_and_a_restarted_one_serve_the_same_bytes() {
    tell(|users| async move {
        users
            .application("shop", &[("a", "orders"), ("b", "stock")])
            .await;
        users
            .apply::<ApplicationMapping>("team-a", "shop", json!({"services": [{"id": "b"}]}))
            .await;
        let mut documents = Vec::new();
        for seed in 0..3 {
            let (offers, run) = users.offers(seed);
            tokio::select! {
                () = offers.ready() => {}
                () = run => unreachable!("it runs for ever"),
            }
            let all = offers.document(None, Level::V2_15, Coding::Plain);
            let team = offers.document(Some("team-a"), Level::V2_15, Coding::Plain);
            assert_eq!((ids(&all).len(), ids(&team)), (2, vec!["b".to_owned()]));
            documents.push((all, team));
        }
        assert!(documents.windows(2).all(|pair| pair[0] == pair[1]));
    });
}

#[test]
fn another_catalog_mapping_is_refused_while_instances_live() {
    tell(|users| async move {
        let refuse = |mode| catalog::refuse_switch(&users.client, mode);
        refuse(Mode::PerApplication).await.unwrap();
        let instance = |name: &str| {
            json!({
                "instanceID": name, "serviceID": "a", "planID": "a-plan",
                "application": {"name": "shop", "serviceID": "a"},
            })
        };
        for n in 0..12 {
            let name = format!("instance-{n:02}");
            users
                .apply::<ServiceInstance>("team-a", &name, instance(&name))
                .await;
        }
        refuse(Mode::PerService).await.unwrap();
        let refusal = refuse(Mode::PerApplication).await.unwrap_err().to_string();
        for part in [
            "perApplication",
            "12 instances",
            "perService",
            "team-a/instance-00",
            "and 2 more",
        ] {
            assert!(refusal.contains(part), "{refusal}");
        }
    });
}
