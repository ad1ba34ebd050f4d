//! `heddle-bench noop`: the floor that durable ingest is compared with, a process of its own.
//!
//! The same doors, the same HTTP stack and the same runtime as the real listener; it reads the request whole and answers
//! 202. What heddle adds to this (reading an event, keeping it, routing it) is what a ratio against it shows.

use std::convert::Infallible;

use bytes::Bytes;
use heddle_rt::Tasks;
use heddle_rt::net::{self, Door, Limits};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;

use super::processes;
use heddle::terminal::Terminal;
use heddle::wire::World;

/// Reads every request and answers 202
#[derive(Clone, Debug, clap::Args)]
pub(in super::super) struct Args {}

pub(in super::super) async fn run(
    _: Args,
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let listener = net::bind(([127, 0, 0, 1], 0).into()).await?;
    terminal.say(&listener.address().to_string())?;
    let closed = processes::standard_input_closed(&Tasks::new("noop"))?;
    Ok(net::serve(listener, door(world), tower::service_fn(answer), closed).await?)
}

pub(super) fn door(world: &World) -> Door {
    Door {
        clock: world.clock.clone(),
        tls: None,
        plain_on_loopback: true,
        limits: Limits::default(),
        budget: heddle_rt::Budget::default(),
    }
}

pub(super) async fn answer(
    request: Request<Incoming>,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    let mut response = Response::new(Empty::new());
    *response.status_mut() = match request.into_body().collect().await {
        Ok(_) => StatusCode::ACCEPTED,
        Err(_) => StatusCode::BAD_REQUEST,
    };
    Ok(response)
}
