//! The entity server of the comparison of thread pools in Rust and Go: entities by id over HTTP/1.1.
//!
//! ```text
//! entity_server [--host HOST] [--port N] [--workers N] [--queue-limit N] [--grace-s S] [--idle-s S]
//!               [--entities N]
//! ```
//!
//! `GET /entities/ID` answers 200 and `{"id":…,"description":…,"value":…}`, or 404. `PUT /entities/ID` with such a body
//! answers 200 and `{"created":true}` for a new id, `false` for a known one.
//!
//! The process prints `ready HOST:PORT` once it serves. SIGTERM or SIGINT: no more connections, what was accepted is
//! finished within `--grace-s`, exit 0, or 1 where that was too short. A second signal ends it at once with exit 1. A
//! bad option, or a port that is taken: one line on standard error, exit 2.

#![cfg_attr(test, deny(warnings))]

mod http;
mod options;
mod pool;
mod server;
mod store;

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::panic;
use std::process::{abort, exit, ExitCode};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use socket2::{Domain, Socket, Type};

use options::Options;
use server::Server;

const FAILED_EXIT: u8 = 1;
const USAGE_EXIT: u8 = 2;

/// Connections that the kernel keeps until they are accepted, as Go asks for. The standard library asks for 128, and
/// of a thousand connections at once most would wait a second for their next try.
const BACKLOG: i32 = 4096;

fn main() -> ExitCode {
    let tell = panic::take_hook();
    panic::set_hook(Box::new(move |fault| {
        tell(fault);
        abort() // a fault of the server ends it, and is not a worker less
    }));
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(fault) => return refuse(&fault),
    };
    let mut signals = Signals::new([SIGTERM, SIGINT]).expect("these signals can be caught");
    let listener = match listen(SocketAddr::new(options.host.into(), options.port)) {
        Ok(listener) => listener,
        Err(error) => {
            return refuse(&format!("--port: {error}; allowed: a port that is not taken, or 0 for a free one"))
        }
    };
    let address = listener.local_addr().expect("a listener has an address");
    let server = Server::start(listener, &options);
    println!("ready {address}");
    std::io::stdout().flush().expect("standard output takes the ready line");

    signals.forever().next();
    thread::spawn(move || {
        signals.forever().next();
        exit(FAILED_EXIT.into())
    });
    if server.stop(options.grace) {
        return ExitCode::SUCCESS;
    }
    eprintln!(
        "entity_server: --grace-s {} was too short: what had not ended was given up",
        options.grace.as_secs_f64()
    );
    ExitCode::from(FAILED_EXIT)
}

fn refuse(fault: &str) -> ExitCode {
    eprintln!("entity_server: {fault}");
    ExitCode::from(USAGE_EXIT)
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?; // after a restart, connections of the last process may linger
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
