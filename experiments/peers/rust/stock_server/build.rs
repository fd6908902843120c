//! Generates the messages and the service from `protos/`; needs `protoc`.

fn main() -> std::io::Result<()> {
    tonic_prost_build::configure().build_client(false).compile_protos(
        &["../../../../protos/stock_service/v1/stock.proto"],
        &["../../../../protos"],
    )
}
