//! HTTP/1.1 as far as this service needs it, without I/O: requests out of bytes, replies into bytes.
//!
//! A body has a Content-Length; chunked ones are refused.

use crate::store::{Entity, Store};

/// The longest request, in bytes, head and body together.
pub const REQUEST_BYTES_MAX: usize = 1 << 20;

const HEADERS_MAX: usize = 100;

/// A request that has come whole.
#[derive(Debug, PartialEq)]
pub struct Request<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub body: &'a [u8],
    /// Whether the client wants the connection closed after the reply.
    pub last: bool,
    /// The request's bytes, in all; what follows is the next one.
    pub length: usize,
}

/// The bytes are no request that this server can understand.
#[derive(Debug, PartialEq)]
pub struct BadRequest;

impl<'a> Request<'a> {
    /// The first request of some bytes; none where it is not whole yet.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<Request<'a>>, BadRequest> {
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            return if bytes.len() < REQUEST_BYTES_MAX { Ok(None) } else { Err(BadRequest) };
        };
        let head = std::str::from_utf8(&bytes[..end]).map_err(|_| BadRequest)?;
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, path) = (words.next().ok_or(BadRequest)?, words.next().ok_or(BadRequest)?);
        let mut last = match (words.next(), words.next()) {
            (Some("HTTP/1.1"), None) => false,
            (Some("HTTP/1.0"), None) => true,
            _ => return Err(BadRequest),
        };
        let mut body_length = 0;
        for (number, line) in lines.enumerate() {
            let (name, value) = line.split_once(':').ok_or(BadRequest)?;
            let value = value.trim();
            if number >= HEADERS_MAX || name.eq_ignore_ascii_case("transfer-encoding") {
                return Err(BadRequest);
            } else if name.eq_ignore_ascii_case("content-length") {
                body_length = value.parse().map_err(|_| BadRequest)?;
            } else if name.eq_ignore_ascii_case("connection") {
                last = last && !value.eq_ignore_ascii_case("keep-alive") || value.eq_ignore_ascii_case("close");
            }
        }
        let head_length = end + 4;
        if body_length > REQUEST_BYTES_MAX - head_length.min(REQUEST_BYTES_MAX) {
            return Err(BadRequest);
        }
        let length = head_length + body_length;
        let body = bytes.get(head_length..length);
        Ok(body.map(|body| Request { method, path, body, last, length }))
    }
}

/// What a request gets. After the last one the connection is closed.
pub struct Reply {
    status: &'static str,
    body: String,
    pub last: bool,
}

impl Reply {
    /// For bytes that are no request.
    pub fn bad_request() -> Reply {
        Reply { last: true, ..refusal("400 Bad Request", "no request of HTTP/1.1, cut off, or over 1 MiB") }
    }

    /// The reply on the wire.
    pub fn bytes(&self) -> Vec<u8> {
        let connection = if self.last { "close" } else { "keep-alive" };
        format!(
            "HTTP/1.1 {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: {connection}\r\n\r\n{}",
            self.status,
            self.body.len(),
            self.body
        )
        .into_bytes()
    }
}

fn refusal(status: &'static str, why: &str) -> Reply {
    Reply { status, body: serde_json::json!({ "error": why }).to_string(), last: false }
}

/// Answers a request.
pub fn answer(store: &Store, request: &Request) -> Reply {
    let id = request.path.strip_prefix("/entities/").and_then(|digits| digits.parse().ok());
    let reply = match (id, request.method) {
        (None, _) => refusal("404 Not Found", "nothing there: ask for /entities/ and a whole number"),
        (Some(id), "GET") => get(store, id),
        (Some(id), "PUT") => put(store, id, request.body),
        _ => refusal("405 Method Not Allowed", "allowed: GET, PUT"),
    };
    Reply { last: request.last, ..reply }
}

fn get(store: &Store, id: i64) -> Reply {
    match store.get(id).map(|entity| serde_json::to_string(&entity)) {
        Some(Ok(body)) => Reply { status: "200 OK", body, last: false },
        Some(Err(error)) => refusal("500 Internal Server Error", &error.to_string()),
        None => refusal("404 Not Found", &format!("no entity {id}")),
    }
}

fn put(store: &Store, id: i64, body: &[u8]) -> Reply {
    match serde_json::from_slice::<Entity>(body) {
        Ok(entity) if entity.id == id => {
            let body = serde_json::json!({ "created": store.put(entity) }).to_string();
            Reply { status: "200 OK", body, last: false }
        }
        _ => refusal("400 Bad Request", "needed: {\"id\":…,\"description\":…,\"value\":…}, with the path's id"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUT: &str = "PUT /entities/7 HTTP/1.1\r\nHost: a\r\ncontent-length: 41\r\n\r\n\
                       {\"id\":7,\"description\":\"one\",\"value\":0.25}GET";

    /// However the bytes are cut, a request is there when its last byte is, and no byte of the next one is taken.
    #[test]
    fn a_request_is_whole_or_not_there() {
        let length = PUT.len() - "GET".len();
        for end in 0..length {
            assert_eq!(Request::parse(&PUT.as_bytes()[..end]), Ok(None));
        }
        let request = Request::parse(PUT.as_bytes()).unwrap().unwrap();
        assert_eq!((request.method, request.path, request.length), ("PUT", "/entities/7", length));
        assert!(request.body.ends_with(b"0.25}"));
        assert!(!request.last);
    }

    /// Who wants the connection closed is heard, in both versions.
    #[test]
    fn the_last_request() {
        let last = |head: &str| Request::parse(format!("GET / {head}\r\n\r\n").as_bytes()).unwrap().unwrap().last;
        assert!(last("HTTP/1.0"));
        assert!(last("HTTP/1.1\r\nConnection: close"));
        assert!(!last("HTTP/1.1"));
        assert!(!last("HTTP/1.0\r\nConnection: Keep-Alive"));
    }

    /// What is no request is refused, and so is one that is too long.
    #[test]
    fn bad_requests() {
        for text in [
            "nonsense\r\n\r\n",
            "GET / HTTP/2\r\n\r\n",
            "GET / HTTP/1.1\r\nno colon\r\n\r\n",
            "PUT / HTTP/1.1\r\nContent-Length: many\r\n\r\n",
            "PUT / HTTP/1.1\r\nContent-Length: 1048576\r\n\r\n",
            "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        ] {
            assert_eq!(Request::parse(text.as_bytes()), Err(BadRequest), "{text}");
        }
        assert_eq!(Request::parse(&vec![b'a'; REQUEST_BYTES_MAX]), Err(BadRequest));
    }

    fn answered(store: &Store, method: &str, path: &str, body: &str) -> (&'static str, String) {
        let request = Request { method, path, body: body.as_bytes(), last: false, length: 0 };
        let reply = answer(store, &request);
        (reply.status, reply.body)
    }

    /// An id is absent, then new, then known; the rest is refused.
    #[test]
    fn answers() {
        let store = Store::default();
        let entity = r#"{"id":7,"description":"größer","value":0.5}"#;
        let at = "/entities/7";
        assert_eq!(answered(&store, "GET", at, "").0, "404 Not Found");
        assert_eq!(answered(&store, "PUT", at, entity), ("200 OK", r#"{"created":true}"#.into()));
        assert_eq!(answered(&store, "PUT", at, entity), ("200 OK", r#"{"created":false}"#.into()));
        assert_eq!(answered(&store, "GET", at, ""), ("200 OK", entity.into()));
        assert_eq!(answered(&store, "PUT", "/entities/8", entity).0, "400 Bad Request");
        assert_eq!(answered(&store, "PUT", at, "{").0, "400 Bad Request");
        assert_eq!(answered(&store, "POST", at, entity).0, "405 Method Not Allowed");
        assert_eq!(answered(&store, "GET", "/entities/x", "").0, "404 Not Found");
    }
}
