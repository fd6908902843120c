// Calls the greeter and says how long that took: synchronously, or asynchronously by a completion queue.
//
//     greeter_client --address HOST:PORT [--mode sync|async] [--clients N] [--count N] [--in-flight N]
//
// Each client is a thread with a channel of its own. All connect, and make their first call; then all begin at the same
// moment and make the other calls, --count in all for each. A synchronous client has one call under way, an
// asynchronous one --in-flight. Every reply is checked. A failed call, or a wrong reply, ends it with exit code 1, a bad
// option with 2.
//
// In the end it prints lines of JSON, in nanoseconds. For each client: {"what":"connect","client":…,"ns":…}, {"what":
// "first call",…}, and for every other call {"what":"call",…}, from just before it is sent to just after its reply is
// here. Then {"what":"client",…}: its calls but the first, the wall clock and this thread's processor time from the
// common start to its last reply. At last {"what":"total",…}: all calls, the wall clock from the common start to the last
// reply of all, and the processor time of the whole process, in which gRPC's own threads are.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <condition_variable>
#include <ctime>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "experiments/helloworld/greeter.grpc.pb.h"
#include "options.h"

namespace {

using helloworld::HelloReply;
using helloworld::HelloRequest;
using Stub = helloworld::Greeter::Stub;

constexpr int kConnectWithinS = 10;
const char kName[] = "world";
const char kReply[] = "Hello world";

struct Options {
  std::string address;
  bool async = false;
  int clients = 1, count = 1000, in_flight = 1;
};

Options Parse(int count, char** words) {
  Options given;
  options::Parse(count, words, [&](const std::string& name, const std::string& value) {
    if (name == "--address") {
      given.address = value;
    } else if (name == "--mode") {
      if (value != "sync" && value != "async") options::Refuse(name, value, "sync, async");
      given.async = value == "async";
    } else if (name == "--clients") {
      given.clients = static_cast<int>(options::Number(name, value, 1, 256));
    } else if (name == "--count") {
      given.count = static_cast<int>(options::Number(name, value, 1, 10000000));
    } else if (name == "--in-flight") {
      given.in_flight = static_cast<int>(options::Number(name, value, 1, 1024));
    } else {
      return false;
    }
    return true;
  });
  if (given.address.empty()) options::Refuse("--address", "nothing", "HOST:PORT of the server");
  if (given.in_flight > 1 && !given.async) options::Refuse("--in-flight", "it with --mode sync", "it with --mode async");
  return given;
}

int64_t ClockNs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

// What one client saw.
struct Seen {
  int64_t connect_ns = 0, ended_ns = 0, processor_ns = 0;
  std::vector<int64_t> calls_ns;  // the first call is the first
};

// Where all clients wait until the last of them has made its first call.
class Start {
 public:
  explicit Start(int clients) : missing_(clients) {}

  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (--missing_ == 0) {
      began_ns_ = ClockNs(CLOCK_MONOTONIC);
      began_processor_ns_ = ClockNs(CLOCK_PROCESS_CPUTIME_ID);
      all_here_.notify_all();
    }
    all_here_.wait(lock, [this] { return missing_ <= 0; });
  }

  int64_t began_ns() const { return began_ns_; }
  int64_t began_processor_ns() const { return began_processor_ns_; }

 private:
  std::mutex mutex_;  // guards the rest, until all clients have begun
  std::condition_variable all_here_;
  int missing_;
  int64_t began_ns_ = 0, began_processor_ns_ = 0;
};

[[noreturn]] void Fail(const std::string& said) {
  std::cerr << "greeter_client: " << said << std::endl;
  std::_Exit(1);  // other clients may be in the middle of a call
}

void Check(const grpc::Status& status, const HelloReply& reply) {
  if (!status.ok()) Fail("a call failed: " + status.error_message());
  if (reply.message() != kReply) Fail("a wrong reply: " + reply.message());
}

void CallInTurn(Stub* stub, int count, std::vector<int64_t>* calls_ns) {
  HelloRequest request;
  request.set_name(kName);
  for (int number = 0; number < count; ++number) {
    grpc::ClientContext context;
    HelloReply reply;
    const int64_t sent_ns = ClockNs(CLOCK_MONOTONIC);
    const grpc::Status status = stub->SayHello(&context, request, &reply);
    calls_ns->push_back(ClockNs(CLOCK_MONOTONIC) - sent_ns);
    Check(status, reply);
  }
}

struct Call {
  grpc::ClientContext context;
  HelloReply reply;
  grpc::Status status;
  int64_t sent_ns = 0;
  std::unique_ptr<grpc::ClientAsyncResponseReader<HelloReply>> reader;
};

void CallByQueue(Stub* stub, int count, int in_flight, std::vector<int64_t>* calls_ns) {
  grpc::CompletionQueue queue;
  HelloRequest request;
  request.set_name(kName);
  int sent = 0;
  const auto send = [&] {
    auto* call = new Call;
    call->sent_ns = ClockNs(CLOCK_MONOTONIC);
    call->reader = stub->AsyncSayHello(&call->context, request, &queue);
    call->reader->Finish(&call->reply, &call->status, call);
    ++sent;
  };
  while (sent < count && sent < in_flight) send();
  for (int done = 0; done < count; ++done) {
    void* tag = nullptr;
    bool ok = false;
    if (!queue.Next(&tag, &ok)) Fail("the queue has ended");
    const std::unique_ptr<Call> call(static_cast<Call*>(tag));
    calls_ns->push_back(ClockNs(CLOCK_MONOTONIC) - call->sent_ns);
    Check(call->status, call->reply);
    if (sent < count) send();
  }
  queue.Shutdown();
}

// Whether a channel connects at its first try, in time: gRPC would go on trying where nobody listens.
bool Connected(grpc::Channel* channel) {
  const auto until = std::chrono::system_clock::now() + std::chrono::seconds(kConnectWithinS);
  auto state = channel->GetState(true);
  while (state != GRPC_CHANNEL_READY) {
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || !channel->WaitForStateChange(state, until)) return false;
    state = channel->GetState(true);
  }
  return true;
}

void Run(const Options& given, int number, Start* start, Seen* seen) {
  grpc::ChannelArguments own;
  own.SetInt("client", number);  // channels of equal arguments would share one connection
  const int64_t began_ns = ClockNs(CLOCK_MONOTONIC);
  const auto channel = grpc::CreateCustomChannel(given.address, grpc::InsecureChannelCredentials(), own);
  if (!Connected(channel.get())) Fail("no connection to " + given.address);
  seen->connect_ns = ClockNs(CLOCK_MONOTONIC) - began_ns;
  const auto stub = helloworld::Greeter::NewStub(channel);
  const auto call = [&](int count) {
    if (given.async) {
      CallByQueue(stub.get(), count, given.in_flight, &seen->calls_ns);
    } else {
      CallInTurn(stub.get(), count, &seen->calls_ns);
    }
  };
  seen->calls_ns.reserve(given.count);
  call(1);
  start->Wait();
  const int64_t processor_ns = ClockNs(CLOCK_THREAD_CPUTIME_ID);
  call(given.count - 1);
  seen->processor_ns = ClockNs(CLOCK_THREAD_CPUTIME_ID) - processor_ns;
  seen->ended_ns = ClockNs(CLOCK_MONOTONIC);
}

void Print(const Seen& seen, size_t client, const Start& start) {
  const auto line = [client](const char* what, int64_t ns) {
    std::cout << "{\"what\":\"" << what << "\",\"client\":" << client << ",\"ns\":" << ns << "}\n";
  };
  line("connect", seen.connect_ns);
  for (size_t number = 0; number < seen.calls_ns.size(); ++number)
    line(number ? "call" : "first call", seen.calls_ns[number]);
  std::cout << "{\"what\":\"client\",\"client\":" << client << ",\"calls\":" << seen.calls_ns.size() - 1
            << ",\"wall_ns\":" << seen.ended_ns - start.began_ns() << ",\"processor_ns\":" << seen.processor_ns << "}\n";
}

}  // namespace

int main(int count, char** words) {
  const Options given = Parse(count, words);
  Start start(given.clients);
  std::vector<Seen> seen(given.clients);
  std::vector<std::thread> clients;
  for (int number = 0; number < given.clients; ++number)
    clients.emplace_back(Run, std::cref(given), number, &start, &seen[number]);
  for (auto& client : clients) client.join();
  const int64_t processor_ns = ClockNs(CLOCK_PROCESS_CPUTIME_ID) - start.began_processor_ns();
  int64_t ended_ns = 0;
  for (size_t client = 0; client < seen.size(); ++client) {
    Print(seen[client], client, start);
    ended_ns = std::max(ended_ns, seen[client].ended_ns);
  }
  std::cout << "{\"what\":\"total\",\"calls\":" << seen.size() * (given.count - 1)
            << ",\"wall_ns\":" << ended_ns - start.began_ns() << ",\"processor_ns\":" << processor_ns << "}\n";
  return std::cout.flush() ? 0 : 1;
}
