// The greeter of gRPC's examples in C++: SayHello answers "Hello NAME". It is the synchronous server of the original, on
// the threads that gRPC starts for it.
//
//     greeter_server [--host HOST] [--port N] [--grace-s S]
//
// It prints "ready HOST:PORT" once it serves. SIGTERM or SIGINT: no more connections, what was accepted is finished
// within --grace-s, exit 0, or 1 where that was too short. A second signal ends it at once with exit 1. A bad option, or
// a port that is taken: one line, exit 2.
#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>

#include "experiments/helloworld/greeter.grpc.pb.h"
#include "options.h"

namespace {

// In which a connection must have said that it speaks HTTP/2. One that does not would keep the server from stopping.
constexpr int kHelloWithinMs = 1000;

class Greeter final : public helloworld::Greeter::Service {
  grpc::Status SayHello(grpc::ServerContext*, const helloworld::HelloRequest* request,
                        helloworld::HelloReply* reply) override {
    reply->set_message("Hello " + request->name());
    return grpc::Status::OK;
  }
};

struct Options {
  std::string host = "127.0.0.1";
  int port = 50091;
  double grace_s = 5;
};

Options Parse(int count, char** words) {
  Options given;
  options::Parse(count, words, [&](const std::string& name, const std::string& value) {
    in_addr address{};
    if (name == "--host") {
      if (inet_pton(AF_INET, value.c_str(), &address) != 1 || ntohl(address.s_addr) >> 24 != 127)
        options::Refuse(name, value, "a loopback address of IPv4, such as 127.0.0.1");
      given.host = value;
    } else if (name == "--port") {
      given.port = static_cast<int>(options::Number(name, value, 0, 65535));
    } else if (name == "--grace-s") {
      given.grace_s = options::Number(name, value, 0, 3600);
    } else {
      return false;
    }
    return true;
  });
  return given;
}

}  // namespace

int main(int count, char** words) {
  const Options given = Parse(count, words);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before the first thread, so that all have them blocked
  setenv("GRPC_VERBOSITY", "NONE", 0);            // what it says of a port that is taken is several lines

  Greeter greeter;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // else a second server takes half of the connections
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHelloWithinMs);
  builder.AddListeningPort(given.host + ":" + std::to_string(given.port), grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&greeter);
  const auto server = builder.BuildAndStart();
  if (!server || port == 0)
    options::Refuse("--port", std::to_string(given.port), "a port that is not taken, or 0 for a free one");
  std::cout << "ready " << given.host << ":" << port << std::endl;

  int signal = 0;
  sigwait(&signals, &signal);
  std::thread([&signals] {
    int again = 0;
    sigwait(&signals, &again);
    std::_Exit(1);
  }).detach();
  const auto grace = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(given.grace_s));
  const auto until = std::chrono::system_clock::now() + grace;
  server->Shutdown(until);  // cancels what is under way at that moment
  if (given.grace_s > 0 && std::chrono::system_clock::now() >= until) {
    std::cerr << "greeter_server: --grace-s " << given.grace_s << " was too short: what had not ended was given up\n";
    std::_Exit(1);
  }
  std::_Exit(0);  // the thread that waits for another signal is never joined
}
