//! The command line.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::time::Duration;

/// What the server is started with.
#[derive(Debug, PartialEq)]
pub struct Options {
    pub host: Ipv4Addr,
    pub port: u16,
    /// Threads that serve connections.
    pub workers: usize,
    /// Connections that may wait for a worker, beside the kernel's.
    pub queue_limit: usize,
    /// Time to finish what was accepted, when stopping.
    pub grace: Duration,
    /// After which a connection without a request is closed.
    pub idle: Duration,
    /// That there are from the start, with the ids from 1.
    pub entities: i64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            host: Ipv4Addr::LOCALHOST,
            port: 50072,
            workers: 8,
            queue_limit: 1024,
            grace: Duration::from_secs(5),
            idle: Duration::from_secs(60),
            entities: 0,
        }
    }
}

impl Options {
    /// Reads `--name value` and `--name=value`. The fault is one line: the option, what was given, what is allowed.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options::default();
        while let Some(word) = words.next() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name.to_string(), Some(value.to_string())),
                None => (word, None),
            };
            let mut value =
                || value.clone().or_else(|| words.next()).ok_or_else(|| format!("{name}: a value is needed"));
            match name.as_str() {
                "--host" => options.host = loopback(&value()?)?,
                "--port" => options.port = number(&name, &value()?, 0..=65535)?,
                "--workers" => options.workers = number(&name, &value()?, 1..=1024)?,
                "--queue-limit" => options.queue_limit = number(&name, &value()?, 1..=1_000_000)?,
                "--idle-s" => options.idle = Duration::from_secs(number(&name, &value()?, 1..=86400)?),
                "--entities" => options.entities = number(&name, &value()?, 0..=1_000_000)?,
                "--grace-s" => options.grace = seconds(&name, &value()?)?,
                _ => return Err(format!("{name}: no such option")),
            }
        }
        Ok(options)
    }
}

fn loopback(value: &str) -> Result<Ipv4Addr, String> {
    let address = value.parse().ok().filter(Ipv4Addr::is_loopback);
    address.ok_or_else(|| format!("--host: got {value:?}, allowed: a loopback address of IPv4, such as 127.0.0.1"))
}

fn number<N: TryFrom<u64>>(name: &str, value: &str, allowed: RangeInclusive<u64>) -> Result<N, String> {
    let parsed = value.parse().ok().filter(|number| allowed.contains(number));
    let fits = parsed.and_then(|number| N::try_from(number).ok());
    fits.ok_or_else(|| format!("{name}: got {value:?}, allowed: {} to {}", allowed.start(), allowed.end()))
}

fn seconds(name: &str, value: &str) -> Result<Duration, String> {
    let parsed = value.parse().ok().filter(|seconds| (0.0..=3600.0).contains(seconds));
    parsed.map(Duration::from_secs_f64).ok_or_else(|| format!("{name}: got {value:?}, allowed: 0 to 3600"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(String::from))
    }

    /// Every option is taken, in both ways of writing it; what is not given stands at its default.
    #[test]
    fn all_are_taken() {
        let options = parse("--port 0 --workers=2 --queue-limit 3 --grace-s 0.5 --idle-s 4 --host 127.0.0.2 --entities 5");
        let (grace, idle) = (Duration::from_millis(500), Duration::from_secs(4));
        let host = Ipv4Addr::new(127, 0, 0, 2);
        assert_eq!(options, Ok(Options { host, port: 0, workers: 2, queue_limit: 3, grace, idle, entities: 5 }));
        assert_eq!(parse(""), Ok(Options::default()));
    }

    /// A bad option is named.
    #[test]
    fn faults_are_named() {
        for line in ["--port 65536", "--workers 0", "--grace-s nan", "--host 0.0.0.0", "--no-such 1", "--idle-s"] {
            let name = line.split_whitespace().next().unwrap();
            assert!(parse(line).unwrap_err().contains(name), "{line}");
        }
    }
}
