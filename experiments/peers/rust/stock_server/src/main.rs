//! The stock service on tonic as it comes: what it costs where no interpreter runs.
//!
//! ```text
//! stock_server [--host HOST] [--port N] [--catalog FILE] [--grace-s S]
//! ```
//!
//! It answers `stock_service.v1.StockService` of `protos/`, with the same statuses as the service in Python. The stocks
//! are the default four, or those of a catalog file in TOML. Tokio runs as many threads as the process may use cores.
//!
//! The process prints `ready HOST:PORT` once it serves. SIGTERM or SIGINT: no more connections, what was accepted is
//! finished within `--grace-s`, exit 0, or 1 where that was too short. A second signal ends it at once with exit 1. A
//! bad option, or a port that is taken: one line on standard error, exit 2.

#![cfg_attr(test, deny(warnings))]

mod catalog;
mod options;

use std::io::Write;
use std::net::SocketAddr;
use std::process::{exit, ExitCode};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::signal::unix::{signal, Signal, SignalKind};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tonic::transport::server::TcpIncoming;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use catalog::Catalog;
use options::Options;
use v1::stock_service_server::{StockService, StockServiceServer};
use v1::{LookupRequest, LookupResponse, TradeRequest, TradeResponse, UpdateRequest, UpdateResponse};

/// What `build.rs` generates.
pub mod v1 {
    tonic::include_proto!("stock_service.v1");
}

const FAILED_EXIT: u8 = 1;
const USAGE_EXIT: u8 = 2;

/// The service, on one catalog.
struct Served {
    catalog: Arc<Catalog>,
}

#[tonic::async_trait]
impl StockService for Served {
    async fn lookup(&self, asked: Request<LookupRequest>) -> Result<Response<LookupResponse>, Status> {
        Ok(Response::new(self.catalog.lookup(&asked.into_inner().name)))
    }

    async fn trade(&self, asked: Request<TradeRequest>) -> Result<Response<TradeResponse>, Status> {
        let reply = self.catalog.trade_once(asked.into_inner());
        reply.map(Response::new).map_err(|fault| Status::invalid_argument(fault.to_string()))
    }

    async fn update(&self, asked: Request<UpdateRequest>) -> Result<Response<UpdateResponse>, Status> {
        let asked = asked.into_inner();
        Ok(Response::new(self.catalog.update(&asked.name, asked.price_cents)))
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(fault) => return refuse(&fault),
    };
    let stocks = match options.catalog.as_deref().map_or_else(|| Ok(catalog::default_stocks()), catalog::load) {
        Ok(stocks) => stocks,
        Err(fault) => return refuse(&format!("--catalog: {fault}")),
    };
    let mut signals = [SignalKind::terminate(), SignalKind::interrupt()]
        .map(|kind| signal(kind).expect("these signals can be caught"));
    let listener = match TcpListener::bind(SocketAddr::new(options.host.into(), options.port)).await {
        Ok(listener) => listener,
        Err(error) => {
            return refuse(&format!("--port: {error}; allowed: a port that is not taken, or 0 for a free one"))
        }
    };
    println!("ready {}", listener.local_addr().expect("a listener has an address"));
    std::io::stdout().flush().expect("standard output takes the ready line");

    let served = Served { catalog: Arc::new(Catalog::new(&stocks)) };
    let (stop, stopped) = oneshot::channel::<()>();
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let serving = tokio::spawn(
        Server::builder()
            .accept_http1(true) // it looks at the first bytes then, and a stop waits for no connection without any
            .add_service(StockServiceServer::new(served))
            .serve_with_incoming_shutdown(incoming, async { drop(stopped.await) }),
    );
    next(&mut signals).await;
    tokio::spawn(async move {
        next(&mut signals).await;
        exit(FAILED_EXIT.into())
    });
    drop(stop);
    match timeout(options.grace, serving).await {
        Ok(Ok(Ok(()))) => ExitCode::SUCCESS,
        Ok(failed) => {
            eprintln!("stock_server: the server failed: {failed:?}");
            ExitCode::from(FAILED_EXIT)
        }
        Err(_) => {
            let grace_s = options.grace.as_secs_f64();
            eprintln!("stock_server: --grace-s {grace_s} was too short: what had not ended was given up");
            exit(FAILED_EXIT.into())
        }
    }
}

/// Waits for either signal.
async fn next([terminate, interrupt]: &mut [Signal; 2]) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

fn refuse(fault: &str) -> ExitCode {
    eprintln!("stock_server: {fault}");
    ExitCode::from(USAGE_EXIT)
}
