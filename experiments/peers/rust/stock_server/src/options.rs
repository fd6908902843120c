//! The command line.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

/// What the server is started with.
#[derive(Debug, PartialEq)]
pub struct Options {
    pub host: Ipv4Addr,
    pub port: u16,
    /// The stocks; the default four where none is given.
    pub catalog: Option<PathBuf>,
    /// Time to finish what was accepted, when stopping.
    pub grace: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options { host: Ipv4Addr::LOCALHOST, port: 50063, catalog: None, grace: Duration::from_secs(5) }
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
                "--port" => options.port = port(&value()?)?,
                "--catalog" => options.catalog = Some(value()?.into()),
                "--grace-s" => options.grace = seconds(&value()?)?,
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

fn port(value: &str) -> Result<u16, String> {
    value.parse().map_err(|_| format!("--port: got {value:?}, allowed: 0 to 65535"))
}

fn seconds(value: &str) -> Result<Duration, String> {
    let parsed = value.parse().ok().filter(|seconds| (0.0..=3600.0).contains(seconds));
    parsed.map(Duration::from_secs_f64).ok_or_else(|| format!("--grace-s: got {value:?}, allowed: 0 to 3600"))
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
        let options = parse("--port 0 --catalog=stocks.toml --grace-s 0.5 --host 127.0.0.2");
        let (grace, catalog) = (Duration::from_millis(500), Some("stocks.toml".into()));
        assert_eq!(options, Ok(Options { host: Ipv4Addr::new(127, 0, 0, 2), port: 0, catalog, grace }));
        assert_eq!(parse(""), Ok(Options::default()));
    }

    /// A bad option is named.
    #[test]
    fn faults_are_named() {
        for line in ["--port 65536", "--grace-s nan", "--host 0.0.0.0", "--no-such 1", "--catalog"] {
            let name = line.split_whitespace().next().unwrap();
            assert!(parse(line).unwrap_err().contains(name), "{line}");
        }
    }
}
