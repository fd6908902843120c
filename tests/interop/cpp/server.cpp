// A gRPC server in C++ for the lean client's tests, with what ../go_server/main.go has: the stock service's Lookup, and
// methods that try what it does not. The messages of interop.Trial are not decoded: their bytes are the payload's.
//
// It prints "ready HOST:PORT" and serves until SIGTERM. With -keepalive it pings a connection that was silent
// for a second, and closes it if that is not answered within half of one.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <csignal>
#include <iostream>
#include <string>
#include <thread>

#include "stock_service/v1/stock.grpc.pb.h"

namespace {

const char kDetail[] = "Kurs über 100 % – ß";

class StockService final : public stock_service::v1::StockService::CallbackService {
  grpc::ServerUnaryReactor* Lookup(grpc::CallbackServerContext* context,
                                   const stock_service::v1::LookupRequest* request,
                                   stock_service::v1::LookupResponse* reply) override {
    reply->set_status(stock_service::v1::STATUS_OK);
    reply->set_price_cents(100 * static_cast<int64_t>(request->name().size()));
    reply->set_volume(7);
    reply->set_sequence(7);
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

// One call of a method that no generated service has: reads the request, answers by the method's name.
class Trial final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Trial(std::string method) : method_(std::move(method)) { StartRead(&request_); }

  void OnReadDone(bool ok) override {
    std::string payload;
    grpc::Slice whole;
    if (!ok || !request_.DumpToSingleSlice(&whole).ok()) {
      Finish(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "no request"));
      return;
    }
    payload.assign(reinterpret_cast<const char*>(whole.begin()), whole.size());
    if (method_ == "/interop.Trial/Fail" && !payload.empty()) {
      Finish(grpc::Status(static_cast<grpc::StatusCode>(payload[0]), kDetail));
    } else if (method_ == "/interop.Trial/Large") {
      std::string large;
      for (int i = 0; i < 50000; ++i) large += "large ";
      Answer(large);
    } else if (method_ == "/interop.Trial/Echo") {
      Answer(payload);
    } else if (method_ == "/interop.Trial/Late") {
      std::this_thread::sleep_for(std::chrono::seconds(2));
      Answer(payload);
    } else {
      Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "no such method"));
    }
  }

  void OnDone() override { delete this; }

 private:
  void Answer(const std::string& payload) {
    grpc::Slice slice(payload);
    reply_ = grpc::ByteBuffer(&slice, 1);
    StartWriteAndFinish(&reply_, grpc::WriteOptions(), grpc::Status::OK);
  }

  const std::string method_;
  grpc::ByteBuffer request_, reply_;
};

class TrialService final : public grpc::CallbackGenericService {
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    return new Trial(context->method());
  }
};

}  // namespace

int main(int count, char** arguments) {
  sigset_t terminate;
  sigemptyset(&terminate);
  sigaddset(&terminate, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &terminate, nullptr);  // before the first thread, so that all have it blocked
  StockService stock;
  TrialService trial;
  int port = 0;
  grpc::ServerBuilder builder;
  if (count > 1 && std::string(arguments[1]) == "-keepalive") {
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 1000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 500);
  }
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&stock);
  builder.RegisterCallbackGenericService(&trial);
  const auto server = builder.BuildAndStart();
  if (!server) return 1;
  std::cout << "ready 127.0.0.1:" << port << std::endl;
  int signal = 0;
  sigwait(&terminate, &signal);
  server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(2));
  return 0;
}
