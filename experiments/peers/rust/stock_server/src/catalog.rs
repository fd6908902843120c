//! Every stock as it stands, behind one mutex, and what each request does to it.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use serde::Deserialize;

use crate::v1::{LookupResponse, Side, Status, TradeRequest, TradeResponse, UpdateResponse};

const QUANTITY_MAX: i64 = i32::MAX as i64;
const NAME_MAX: usize = 64;
const REQUEST_ID_MAX: usize = 64;
/// Request ids that are remembered; an older one is taken for a new one.
const IDS_MAX: usize = 100_000;

/// A stock as a catalog file has it; the price in dollars.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Stock {
    name: String,
    price: f64,
    volume_limit: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    stocks: Vec<Stock>,
}

/// The stocks where no file names others.
pub fn default_stocks() -> Vec<Stock> {
    [("GameStart", 15.99), ("FishCo", 42.50), ("BoarCo", 8.75), ("MenhirCo", 101.20)]
        .map(|(name, price)| Stock { name: name.into(), price, volume_limit: 1_000_000 })
        .into()
}

/// Reads a catalog file. The fault names it.
pub fn load(path: &Path) -> Result<Vec<Stock>, String> {
    let file = path.display();
    let text = fs::read_to_string(path).map_err(|error| format!("{file}: {error}"))?;
    let read: File = toml::from_str(&text).map_err(|error| format!("{file}: {}", error.message()))?;
    let mut seen = HashMap::new();
    for (number, each) in read.stocks.iter().enumerate() {
        let fits = (1..=NAME_MAX).contains(&each.name.chars().count()) && each.price >= 0.0 && each.volume_limit >= 0;
        if !fits || seen.insert(&each.name, ()).is_some() {
            return Err(format!("{file}: stocks[{}]: allowed: a new name, a price and a limit of 0 or more", number + 1));
        }
    }
    if read.stocks.is_empty() {
        return Err(format!("{file}: got no stock, allowed: tables [[stocks]]"));
    }
    Ok(read.stocks)
}

/// Why a trade is not even refused: its request id cannot be one.
#[derive(Debug, PartialEq)]
pub enum BadId {
    TooLong,
    UsedForAnother,
}

impl fmt::Display for BadId {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        match self {
            BadId::TooLong => write!(to, "request_id is too long, allowed: 1 to {REQUEST_ID_MAX} characters, or none"),
            BadId::UsedForAnother => write!(to, "request_id was used for another trade: a new one needs a new id"),
        }
    }
}

struct Entry {
    price_cents: i64,
    volume: i64,
    volume_limit: i64,
    sequence: i64,
}

struct State {
    entries: HashMap<String, Entry>,
    commits: i64,
    /// The first use of each request id, and its reply.
    uses: HashMap<String, (TradeRequest, TradeResponse)>,
    oldest: VecDeque<String>,
}

/// The catalog. Every method may be called from any thread.
pub struct Catalog {
    state: Mutex<State>,
}

impl Catalog {
    pub fn new(stocks: &[Stock]) -> Catalog {
        let entries = stocks.iter().map(|each| {
            let price_cents = (each.price * 100.0).round() as i64;
            (each.name.clone(), Entry { price_cents, volume: 0, volume_limit: each.volume_limit, sequence: 0 })
        });
        let state = State { entries: entries.collect(), commits: 0, uses: HashMap::new(), oldest: VecDeque::new() };
        Catalog { state: Mutex::new(state) }
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics under the lock")
    }

    pub fn lookup(&self, name: &str) -> LookupResponse {
        match self.locked().entries.get(name) {
            None => LookupResponse { status: Status::UnknownStock.into(), ..Default::default() },
            Some(found) => {
                let status = if found.volume < found.volume_limit { Status::Ok } else { Status::Suspended };
                LookupResponse {
                    status: status.into(),
                    price_cents: found.price_cents,
                    volume: found.volume,
                    sequence: found.sequence,
                }
            }
        }
    }

    /// Trades, but for a request id that was used: it gives that trade's reply again.
    pub fn trade_once(&self, asked: TradeRequest) -> Result<TradeResponse, BadId> {
        let mut state = self.locked();
        if asked.request_id.is_empty() {
            return Ok(state.trade(&asked));
        }
        if asked.request_id.chars().count() > REQUEST_ID_MAX {
            return Err(BadId::TooLong);
        }
        if let Some((first, reply)) = state.uses.get(&asked.request_id) {
            return if *first == asked { Ok(*reply) } else { Err(BadId::UsedForAnother) };
        }
        let reply = state.trade(&asked);
        state.remember(asked, reply);
        Ok(reply)
    }

    pub fn update(&self, name: &str, price_cents: i64) -> UpdateResponse {
        let mut state = self.locked();
        let State { entries, commits, .. } = &mut *state;
        let Some(found) = entries.get_mut(name) else {
            return UpdateResponse { status: Status::UnknownStock.into(), sequence: 0 };
        };
        if price_cents < 0 {
            return UpdateResponse { status: Status::InvalidPrice.into(), sequence: 0 };
        }
        *commits += 1;
        found.price_cents = price_cents;
        found.sequence = *commits;
        UpdateResponse { status: Status::Ok.into(), sequence: *commits }
    }
}

impl State {
    fn trade(&mut self, asked: &TradeRequest) -> TradeResponse {
        let refused = |status: Status, volume| TradeResponse { status: status.into(), volume, sequence: 0 };
        let Some(found) = self.entries.get_mut(&asked.name) else {
            return refused(Status::UnknownStock, 0);
        };
        if !(1..=QUANTITY_MAX).contains(&asked.quantity) {
            return refused(Status::InvalidQuantity, 0);
        }
        if asked.side != Side::Buy as i32 && asked.side != Side::Sell as i32 {
            return refused(Status::InvalidSide, 0);
        }
        if asked.quantity > found.volume_limit - found.volume {
            return refused(Status::Suspended, found.volume);
        }
        self.commits += 1;
        found.volume += asked.quantity;
        found.sequence = self.commits;
        TradeResponse { status: Status::Ok.into(), volume: found.volume, sequence: found.sequence }
    }

    fn remember(&mut self, asked: TradeRequest, reply: TradeResponse) {
        if self.oldest.len() == IDS_MAX {
            let oldest = self.oldest.pop_front().expect("it is full");
            self.uses.remove(&oldest);
        }
        self.oldest.push_back(asked.request_id.clone());
        self.uses.insert(asked.request_id.clone(), (asked, reply));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(name: &str, quantity: i64, side: i32, request_id: &str) -> TradeRequest {
        TradeRequest { name: name.into(), quantity, side, request_id: request_id.into() }
    }

    /// Trades fill a stock's volume up to its limit, and number the commits; a refusal is none.
    #[test]
    fn trades() {
        let catalog = Catalog::new(&[Stock { name: "a".into(), price: 1.15, volume_limit: 10 }]);
        for (asked, status, volume, sequence) in [
            (ask("a", 6, 1, ""), Status::Ok, 6, 1),
            (ask("a", 5, 1, ""), Status::Suspended, 6, 0),
            (ask("a", 0, 0, ""), Status::InvalidQuantity, 0, 0),
            (ask("a", 1 << 31, 1, ""), Status::InvalidQuantity, 0, 0),
            (ask("a", 1, 3, ""), Status::InvalidSide, 0, 0),
            (ask("b", 0, 0, ""), Status::UnknownStock, 0, 0),
            (ask("a", 4, 2, ""), Status::Ok, 10, 2),
        ] {
            let wanted = TradeResponse { status: status.into(), volume, sequence };
            assert_eq!(catalog.trade_once(asked), Ok(wanted));
        }
        let wanted = LookupResponse { status: Status::Suspended.into(), price_cents: 115, volume: 10, sequence: 2 };
        assert_eq!(catalog.lookup("a"), wanted);
    }

    /// The same trade sent again has one effect; an id for another trade, and one that is too long, are faults.
    #[test]
    fn request_ids() {
        let catalog = Catalog::new(&default_stocks());
        let wanted = TradeResponse { status: Status::Ok.into(), volume: 3, sequence: 1 };
        for _ in 0..2 {
            assert_eq!(catalog.trade_once(ask("FishCo", 3, 1, "one")), Ok(wanted));
        }
        assert_eq!(catalog.trade_once(ask("FishCo", 4, 1, "one")), Err(BadId::UsedForAnother));
        assert_eq!(catalog.trade_once(ask("FishCo", 4, 1, &"é".repeat(REQUEST_ID_MAX + 1))), Err(BadId::TooLong));
    }

    /// Past the window the oldest id is forgotten, and no other.
    #[test]
    fn the_window() {
        let catalog = Catalog::new(&default_stocks());
        let mut state = catalog.locked();
        for number in 0..=IDS_MAX {
            state.remember(ask("FishCo", 1, 1, &number.to_string()), TradeResponse::default());
        }
        assert_eq!(state.uses.len(), IDS_MAX);
        assert!(!state.uses.contains_key("0") && state.uses.contains_key("1"));
    }

    /// An update sets a price of 0 or more.
    #[test]
    fn updates() {
        let catalog = Catalog::new(&default_stocks());
        for (name, price_cents, status, sequence) in
            [("FishCo", -1, Status::InvalidPrice, 0), ("FishCo", 0, Status::Ok, 1), ("none", -1, Status::UnknownStock, 0)]
        {
            assert_eq!(catalog.update(name, price_cents), UpdateResponse { status: status.into(), sequence });
        }
        assert_eq!(catalog.lookup("FishCo").sequence, 1);
    }

    /// A catalog file gives the stocks; a bad one is refused.
    #[test]
    fn files() {
        let path = std::env::temp_dir().join(format!("stocks-{}.toml", std::process::id()));
        for (price, good) in [("15.99", true), ("15", true), ("-1", false), ("\"x\"", false)] {
            fs::write(&path, format!("[[stocks]]\nname = \"a\"\nprice = {price}\nvolume_limit = 7\n")).unwrap();
            assert_eq!(load(&path).is_ok(), good, "{price}");
        }
        fs::remove_file(path).unwrap();
    }
}
