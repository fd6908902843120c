//! Connections: accepted by one thread, served by the pool, a connection at a time by a worker until it ends.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::http::{answer, Reply, Request};
use crate::options::Options;
use crate::pool::Pool;
use crate::store::Store;

/// Of a request's first byte its last one must have come.
const REQUEST_WITHIN: Duration = Duration::from_secs(10);
/// In which a client must have taken its reply.
const REPLY_WITHIN: Duration = Duration::from_secs(10);
/// How long a read waits before it looks whether the server is stopping: a read that waits cannot be told.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long the connection may take that ends the accepting thread.
const WAKE_WITHIN: Duration = Duration::from_millis(100);
/// Out of descriptors: some connection will end.
const RETRY_AFTER: Duration = Duration::from_millis(10);
const READ_BYTES: usize = 4096;

/// A server that runs until it is stopped.
pub struct Server {
    address: SocketAddr,
    serving: Arc<Serving>,
    pool: Arc<Pool<TcpStream>>,
}

/// What the threads share.
struct Serving {
    store: Store,
    idle: Duration,
    stopping: AtomicBool,
    /// The connection that ends the accepting thread. What had connected before it is accepted before it.
    last: Mutex<Option<SocketAddr>>,
}

impl Server {
    /// Starts the workers and the thread that accepts.
    pub fn start(listener: TcpListener, options: &Options) -> Server {
        let address = listener.local_addr().expect("a listener has an address");
        let (store, stopping, last) = (Store::with(options.entities), AtomicBool::new(false), Mutex::new(None));
        let serving = Arc::new(Serving { store, idle: options.idle, stopping, last });
        let workers_share = serving.clone();
        let serve = move |connection: TcpStream| {
            // A connection that fails is its client's affair; it is closed.
            let _ = workers_share.serve(&connection);
        };
        let pool = Arc::new(Pool::start(options.workers, options.queue_limit, serve));
        let (accepting, accepted_by) = (serving.clone(), pool.clone());
        let thread = thread::Builder::new().name("accept".into());
        thread.spawn(move || accepting.accept(&listener, &accepted_by)).expect("the system gives a thread");
        Server { address, serving, pool }
    }

    /// Takes no more connections, lets those that were accepted finish their request, and waits for that at most so
    /// long. Says whether all was finished.
    pub fn stop(self, grace: Duration) -> bool {
        let until = Instant::now() + grace;
        self.serving.stopping.store(true, Ordering::Relaxed);
        {
            let mut last = self.serving.last.lock().unwrap();
            let waker = TcpStream::connect_timeout(&self.address, WAKE_WITHIN);
            *last = waker.ok().and_then(|waker| waker.local_addr().ok());
        }
        self.pool.wait(until)
    }
}

impl Serving {
    /// Gives every connection to the pool until the last one, and then closes the pool.
    fn accept(&self, listener: &TcpListener, pool: &Pool<TcpStream>) {
        loop {
            match listener.accept() {
                Ok((_, from)) if *self.last.lock().unwrap() == Some(from) => break,
                Ok((connection, _)) => pool.execute(connection),
                Err(error) => {
                    eprintln!("entity_server: no connection taken: {error}");
                    thread::sleep(RETRY_AFTER);
                }
            }
        }
        pool.close();
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Answers a connection's requests until it ends, or the server does.
    fn serve(&self, connection: &TcpStream) -> io::Result<()> {
        connection.set_nodelay(true)?;
        connection.set_read_timeout(Some(LOOK_EVERY))?;
        connection.set_write_timeout(Some(REPLY_WITHIN))?;
        let mut bytes = Vec::with_capacity(READ_BYTES);
        loop {
            if bytes.is_empty() && !self.request_comes(connection, &mut bytes)? {
                return Ok(());
            }
            let mut reply = match whole_request(connection, &mut bytes)? {
                Some(request) => {
                    let reply = answer(&self.store, &request);
                    let length = request.length;
                    bytes.drain(..length);
                    reply
                }
                None => Reply::bad_request(),
            };
            reply.last |= self.is_stopping();
            (&*connection).write_all(&reply.bytes())?;
            if reply.last {
                return Ok(());
            }
        }
    }

    /// Waits for a request's first bytes. False: the connection has ended, was idle for too long, or is to be closed.
    fn request_comes(&self, connection: &TcpStream, bytes: &mut Vec<u8>) -> io::Result<bool> {
        let until = Instant::now() + self.idle;
        loop {
            match read_more(connection, bytes)? {
                Read::Some => return Ok(true),
                Read::End => return Ok(false),
                Read::NothingYet if self.is_stopping() || Instant::now() >= until => return Ok(false),
                Read::NothingYet => {}
            }
        }
    }
}

/// The first request of the bytes that have come and will come; none where it is not to be understood or not whole.
fn whole_request<'a>(connection: &TcpStream, bytes: &'a mut Vec<u8>) -> io::Result<Option<Request<'a>>> {
    let until = Instant::now() + REQUEST_WITHIN;
    while Request::parse(bytes) == Ok(None) {
        if read_more(connection, bytes)? == Read::End || Instant::now() >= until {
            return Ok(None);
        }
    }
    Ok(Request::parse(bytes).ok().flatten())
}

/// What a read gave.
#[derive(PartialEq)]
enum Read {
    Some,
    NothingYet,
    /// The client sends no more.
    End,
}

/// Reads what has come, once. Blocks for `LOOK_EVERY` at most.
fn read_more(mut connection: &TcpStream, bytes: &mut Vec<u8>) -> io::Result<Read> {
    use io::ErrorKind::{Interrupted, WouldBlock};
    let held = bytes.len();
    bytes.resize(held + READ_BYTES, 0);
    let read = io::Read::read(&mut connection, &mut bytes[held..]);
    bytes.truncate(held + *read.as_ref().unwrap_or(&0));
    match read {
        Ok(0) => Ok(Read::End),
        Ok(_) => Ok(Read::Some),
        // By the signal that stops the server, and by no byte in time.
        Err(error) if matches!(error.kind(), Interrupted | WouldBlock) => Ok(Read::NothingYet),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHIN: Duration = Duration::from_secs(10);
    const PUT: &str =
        "PUT /entities/7 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 38\r\n\r\n\
         {\"id\":7,\"description\":\"a\",\"value\":0.5}";

    fn start(workers: usize) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Server::start(listener, &Options { workers, ..Options::default() })
    }

    fn dial(server: &Server) -> TcpStream {
        let connection = TcpStream::connect(server.address).unwrap();
        connection.set_read_timeout(Some(WITHIN)).unwrap();
        connection
    }

    fn rest_of(mut connection: TcpStream) -> String {
        let mut text = String::new();
        io::Read::read_to_string(&mut connection, &mut text).unwrap();
        text
    }

    /// Requests that come together are answered in order, and the last one says so.
    #[test]
    fn requests_on_one_connection() {
        let server = start(1);
        let mut connection = dial(&server);
        let close = "GET /entities/7 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        connection.write_all(format!("{PUT}{PUT}{close}").as_bytes()).unwrap();
        let said = rest_of(connection);
        let order = ["\"created\":true", "\"created\":false", "Connection: close", "\"description\":\"a\""];
        let places = order.map(|text| said.find(text).unwrap());
        assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "{said}");
        assert!(server.stop(WITHIN));
    }

    /// The half request that a worker reads, and the one that waits for the worker, are answered; an idle one is closed.
    #[test]
    fn stopping_finishes_what_was_accepted() {
        let server = start(2);
        let (idle, mut half, mut queued) = (dial(&server), dial(&server), dial(&server));
        half.write_all(&PUT.as_bytes()[..50]).unwrap();
        queued.write_all(PUT.as_bytes()).unwrap();
        let stopping = thread::spawn(move || server.stop(WITHIN));
        assert_eq!(rest_of(idle), "");
        half.write_all(&PUT.as_bytes()[50..]).unwrap();
        assert!(rest_of(half).starts_with("HTTP/1.1 200 OK"));
        assert!(rest_of(queued).starts_with("HTTP/1.1 200 OK"));
        assert!(stopping.join().unwrap());
    }

    /// A request that does not come is given up when the time is over.
    #[test]
    fn a_grace_period_ends() {
        let server = start(1);
        let mut half = dial(&server);
        half.write_all(b"GET /ent").unwrap();
        assert!(!server.stop(Duration::from_millis(100)));
    }
}
