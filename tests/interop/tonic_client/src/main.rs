//! A client on tonic: see `test_clients.py` beside this folder for what it does and prints. Its messages are written by
//! hand, as prost's derive allows, so that it builds without protoc.

use tonic::codegen::http::uri::PathAndQuery;
use tonic::{transport::Channel, Request, Status};

#[derive(Clone, PartialEq, prost::Message)]
struct LookupRequest {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct LookupResponse {
    #[prost(int32, tag = "1")]
    status: i32,
    #[prost(int64, tag = "2")]
    price_cents: i64,
    #[prost(int64, tag = "3")]
    volume: i64,
    #[prost(int64, tag = "4")]
    sequence: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TradeRequest {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(int64, tag = "2")]
    quantity: i64,
    #[prost(int32, tag = "3")]
    side: i32,
    #[prost(string, tag = "4")]
    request_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TradeResponse {
    #[prost(int32, tag = "1")]
    status: i32,
    #[prost(int64, tag = "2")]
    volume: i64,
    #[prost(int64, tag = "3")]
    sequence: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct UpdateRequest {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(int64, tag = "2")]
    price_cents: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct UpdateResponse {
    #[prost(int32, tag = "1")]
    status: i32,
    #[prost(int64, tag = "2")]
    sequence: i64,
}

struct Client(tonic::client::Grpc<Channel>);

impl Client {
    async fn call<Q, R>(&mut self, method: &str, request: Q) -> Result<R, Status>
    where
        Q: prost::Message + Send + Sync + 'static,
        R: prost::Message + Default + Send + Sync + 'static,
    {
        let path: PathAndQuery = format!("/stock_service.v1.StockService/{method}").parse().expect("a path");
        self.0.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let codec = tonic_prost::ProstCodec::<Q, R>::default();
        Ok(self.0.unary(Request::new(request), path, codec).await?.into_inner())
    }

    async fn lookup(&mut self, name: &str) -> Result<(), Status> {
        let reply: LookupResponse = self.call("Lookup", LookupRequest { name: name.into() }).await?;
        println!("lookup {} {} {} {}", reply.status, reply.price_cents, reply.volume, reply.sequence);
        Ok(())
    }

    async fn trade(&mut self, name: &str, quantity: i64, request_id: &str) -> Result<(), Status> {
        let request = TradeRequest { name: name.into(), quantity, side: 1, request_id: request_id.into() };
        match self.call::<_, TradeResponse>("Trade", request).await {
            Ok(reply) => println!("trade {} {} {}", reply.status, reply.volume, reply.sequence),
            Err(status) => println!("fault {}", status.code() as i32),
        }
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).ok_or("usage: stock-client HOST:PORT")?;
    let channel = Channel::from_shared(format!("http://{address}"))?.connect().await?;
    let mut client = Client(tonic::client::Grpc::new(channel));
    client.lookup("MenhirCo").await?;
    client.trade("MenhirCo", 12, "once").await?;
    client.trade("MenhirCo", 12, "once").await?;
    client.trade("MenhirCo", 13, "once").await?;
    let update = UpdateRequest { name: "MenhirCo".into(), price_cents: 9999 };
    let reply: UpdateResponse = client.call("Update", update).await?;
    println!("update {} {}", reply.status, reply.sequence);
    client.lookup("MenhirCo").await?;
    client.lookup("no such stock").await?;
    match client.call::<_, LookupResponse>("Missing", LookupRequest::default()).await {
        Ok(_) => println!("answered"),
        Err(status) => println!("fault {}", status.code() as i32),
    }
    Ok(())
}
