//! Deliveries to real servers on loopback: good ones, and every sort of bad one.

mod answers;
mod connections;
mod egress;
mod http2;
mod requests;
mod server;

use heddle_api::attributes::Value;
use heddle_rt::net::dial::Network;
use heddle_rt::net::egress::Egress;

use self::server::{Act, Server};
use super::*;
use crate::event::Builder;

/// Long enough for everything that is meant to end by itself.
const PATIENT: Duration = Duration::from_secs(30);
/// Short enough to wait for what is meant not to.
const HASTY: Duration = Duration::from_millis(100);

fn courier(limits: Limits) -> Courier {
    let clock = Clock::system();
    Courier::new(CourierOptions {
        tasks: Tasks::new("test"),
        connect: Arc::new(Network::new(clock.clone(), Egress::default())),
        clock,
        limits,
        replies: ce::Limits::default(),
        budget: Budget::default(),
    })
}

fn event(form: Form, more: &[(&str, &str)], data: Option<&[u8]>) -> Event {
    let mut builder = Builder::new(form);
    let required = [("type", "order.created"), ("source", "/shop"), ("id", "1")];
    for (name, value) in required.iter().chain(more) {
        builder.push(name, Value::Text(value));
    }
    builder.build(data)
}

fn order() -> Event {
    let json = [("datacontenttype", "application/json")];
    event(Form::Binary, &json, Some(b"{\"total\":7}"))
}

/// Delivers one event to a server that acts like this.
async fn outcome(act: Act, timeout: Duration) -> Outcome {
    let server = Server::start(move |_| act.clone()).await;
    let courier = courier(Limits::default());
    let address = courier.address(&server.url(), None).unwrap();
    send(&courier, &address, timeout).await
}

async fn send(courier: &Courier, address: &Address, timeout: Duration) -> Outcome {
    let extra = Extra::default();
    let report = courier.send(address, &order(), None, &extra, timeout).await;
    report.outcome
}

fn accepted(status: u16) -> Outcome {
    let reply = Reply::None;
    Outcome::Accepted { status, reply }
}

fn error_of(outcome: Outcome) -> String {
    match outcome {
        Outcome::Failed { error } => error,
        other => panic!("expected a failure: {other:?}"),
    }
}
