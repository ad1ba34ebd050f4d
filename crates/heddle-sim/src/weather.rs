//! Weather: an API server of which a share of the requests fails, as chance has it, until it clears up.
//!
//! The [sweep](crate::sweep) strikes one point at a time and finds what a single fault breaks. Here everything fails all
//! the time: reads, writes before and after they were carried out, and watches in their midst.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use axum::body::Body;
use futures::StreamExt as _;
use heddle_apiserver::InProcess;
use heddle_rt::Chance;
use http::{Method, Request, Response};
use kube::Client;

use crate::sweep::refusal;

/// An API server in bad weather. Clones share it.
#[derive(Clone, Debug)]
pub struct Weather {
    inner: InProcess,
    chance: Chance,
    sky: Arc<Sky>,
}

#[derive(Debug)]
struct Sky {
    percent: u64,
    is_clear: AtomicBool,
    struck: AtomicU64,
}

impl Weather {
    /// So many of a hundred requests to `inner` fail.
    pub(crate) fn over(inner: InProcess, chance: Chance, percent: u64) -> Self {
        let sky = Arc::new(Sky {
            percent,
            is_clear: AtomicBool::new(false),
            struck: AtomicU64::new(0),
        });
        Self { inner, chance, sky }
    }

    /// Whoever uses this client feels it.
    #[must_use]
    pub fn client(&self) -> Client {
        let weather = self.clone();
        let service = tower::service_fn(move |request| answer(weather.clone(), request));
        Client::new(service, "default")
    }

    /// From now on nothing fails. Gives how much did.
    pub fn clears_up(&self) -> u64 {
        self.sky.is_clear.store(true, Ordering::Relaxed);
        self.sky.struck.load(Ordering::Relaxed)
    }

    fn strikes(&self) -> bool {
        let strikes =
            !self.sky.is_clear.load(Ordering::Relaxed) && self.chance.below(100) < self.sky.percent;
        if strikes {
            self.sky.struck.fetch_add(1, Ordering::Relaxed);
        }
        strikes
    }

    fn refusal(&self) -> Response<Body> {
        refusal(match self.chance.below(4) {
            0 => 409,
            1 => 429,
            2 => 500,
            _ => 503,
        })
    }

    /// Cuts a watch off somewhere.
    fn cut(&self, response: Response<Body>) -> Response<Body> {
        let weather = self.clone();
        response.map(|body| {
            let pieces = body.into_data_stream();
            Body::from_stream(pieces.take_while(move |_| std::future::ready(!weather.strikes())))
        })
    }
}

type WeatherResponse = Result<Response<Body>, Infallible>;

async fn answer(weather: Weather, request: Request<kube::client::Body>) -> WeatherResponse {
    let query = request.uri().query().unwrap_or_default();
    let is_watch = query.contains("watch=true");
    let is_write = request.method() != Method::GET;
    let mut inner = weather.inner.clone();
    if !weather.strikes() {
        let response = tower::Service::call(&mut inner, request).await?;
        return Ok(if is_watch {
            weather.cut(response)
        } else {
            response
        });
    }
    // Half of the writes that fail have been carried out; only the answer is lost.
    if is_write && weather.chance.below(2) == 0 {
        tower::Service::call(&mut inner, request).await?;
        return Ok(refusal(500));
    }
    Ok(weather.refusal())
}
