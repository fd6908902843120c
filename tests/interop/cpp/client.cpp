// A client on gRPC's C++: see test_clients.py beside this folder for what it does and prints.
// client HOST:PORT
#include <chrono>
#include <iostream>
#include <string>

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "stock_service/v1/stock.grpc.pb.h"

namespace stock = stock_service::v1;

namespace {

struct Deadline : grpc::ClientContext {
    Deadline() { set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10)); }
};

void fault(const grpc::Status &status) { std::cout << "fault " << status.error_code() << "\n"; }

void lookup(stock::StockService::Stub &stub, const std::string &name) {
    Deadline context;
    stock::LookupRequest request;
    stock::LookupResponse reply;
    request.set_name(name);
    const auto status = stub.Lookup(&context, request, &reply);
    if (!status.ok()) return fault(status);
    std::cout << "lookup " << reply.status() << " " << reply.price_cents() << " " << reply.volume() << " "
              << reply.sequence() << "\n";
}

void trade(stock::StockService::Stub &stub, int quantity) {
    Deadline context;
    stock::TradeRequest request;
    stock::TradeResponse reply;
    request.set_name("MenhirCo");
    request.set_quantity(quantity);
    request.set_side(stock::SIDE_BUY);
    request.set_request_id("once");
    const auto status = stub.Trade(&context, request, &reply);
    if (!status.ok()) return fault(status);
    std::cout << "trade " << reply.status() << " " << reply.volume() << " " << reply.sequence() << "\n";
}

void update(stock::StockService::Stub &stub) {
    Deadline context;
    stock::UpdateRequest request;
    stock::UpdateResponse reply;
    request.set_name("MenhirCo");
    request.set_price_cents(9999);
    const auto status = stub.Update(&context, request, &reply);
    if (!status.ok()) return fault(status);
    std::cout << "update " << reply.status() << " " << reply.sequence() << "\n";
}

void missing(const std::shared_ptr<grpc::Channel> &channel) {
    Deadline context;
    grpc::CompletionQueue queue;
    grpc::GenericStub stub(channel);
    grpc::ByteBuffer request, reply;
    grpc::Status status;
    auto call = stub.PrepareUnaryCall(&context, "/stock_service.v1.StockService/Missing", request, &queue);
    call->StartCall();
    call->Finish(&reply, &status, nullptr);
    void *tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    fault(status);
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    const auto channel = grpc::CreateChannel(argv[1], grpc::InsecureChannelCredentials());
    const auto stub = stock::StockService::NewStub(channel);
    lookup(*stub, "MenhirCo");
    trade(*stub, 12);
    trade(*stub, 12);
    trade(*stub, 13);
    update(*stub);
    lookup(*stub, "MenhirCo");
    lookup(*stub, "no such stock");
    missing(channel);
    return 0;
}
