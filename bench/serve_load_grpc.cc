// The same load as serve_load, over gRPC: `serve_load_grpc HOST:PORT MODEL INPUT SIZES FILE CONNECTIONS SECONDS`. Threads are gRPC's own.
#include <iostream>

#if __has_include("inference.grpc.pb.h")
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <list>
#include <mutex>
#include <sstream>
#include <thread>

#include "inference.grpc.pb.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Load {
  inference::ModelInferRequest request;
  Clock::time_point warm, end;
  std::mutex mutex;
  std::vector<double> latencies;
  std::string answer, failure;
  int running = 0;
};

void check_answer(Load& load, const inference::ModelInferResponse& response) {
  if (response.raw_output_contents_size() != 1) {
    load.failure = "an answer without one raw output";
    return;
  }
  const std::string& values = response.raw_output_contents(0);
  if (load.answer.empty()) load.answer = values;
  if (values.size() != load.answer.size()) load.failure = "answers of different sizes";
  for (size_t i = 0; i + 4 <= std::min(values.size(), load.answer.size()); i += 4) {
    float a = 0, b = 0;
    std::memcpy(&a, values.data() + i, 4);
    std::memcpy(&b, load.answer.data() + i, 4);
    if (!(std::abs(a - b) <= 1e-4f * std::max(1.0f, std::abs(b)))) load.failure = "answers that differ";
  }
}

// A connection, with one call at a time.
class Client {
 public:
  Client(const std::string& address, Load& load) : load_(load) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = inference::GRPCInferenceService::NewStub(grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  }
  void call() {
    context_ = std::make_unique<grpc::ClientContext>();
    sent_ = Clock::now();
    stub_->async()->ModelInfer(context_.get(), &load_.request, &response_, [this](const grpc::Status& status) {
      const auto now = Clock::now();
      bool more = true;
      {
        std::scoped_lock lock(load_.mutex);
        if (!status.ok())
          load_.failure = status.error_message();
        else
          check_answer(load_, response_);
        if (now > load_.warm) load_.latencies.push_back(std::chrono::duration<double>(now - sent_).count());
        more = now < load_.end && load_.failure.empty();
        if (!more) --load_.running;
      }
      if (more) call();
    });
  }

 private:
  Load& load_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  inference::ModelInferResponse response_;
  Clock::time_point sent_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) {
    std::cerr << "serve_load_grpc: HOST:PORT MODEL INPUT SIZES FILE CONNECTIONS SECONDS\n";
    return 1;
  }
  Load load;
  std::ifstream file(argv[5], std::ios::binary);
  std::stringstream sample;
  sample << file.rdbuf();
  load.request.set_model_name(argv[2]);
  auto& input = *load.request.add_inputs();
  input.set_name(argv[3]);
  input.set_datatype("FP32");
  input.add_shape(1);
  std::stringstream sizes(argv[4]);
  for (std::string size; std::getline(sizes, size, ',');) input.add_shape(std::stol(size));
  load.request.add_raw_input_contents(sample.str());
  load.warm = Clock::now() + std::chrono::milliseconds(500);
  load.end = load.warm + std::chrono::milliseconds(static_cast<int64_t>(std::stod(argv[7]) * 1000));
  load.running = std::stoi(argv[6]);
  std::list<Client> clients;
  for (int i = 0; i < std::stoi(argv[6]); ++i) clients.emplace_back(argv[1], load).call();
  while (true) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::scoped_lock lock(load.mutex);
    if (load.running == 0) break;
  }
  if (!load.failure.empty() || load.latencies.empty()) {
    std::cerr << "serve_load_grpc: " << load.failure << "\n";
    return 1;
  }
  std::sort(load.latencies.begin(), load.latencies.end());
  std::cout << "{\"per_second\": "
            << static_cast<double>(load.latencies.size()) / std::chrono::duration<double>(load.end - load.warm).count()
            << ", \"p50_us\": " << load.latencies[load.latencies.size() / 2] * 1e6
            << ", \"p99_us\": " << load.latencies[load.latencies.size() * 99 / 100] * 1e6 << ", \"answer\": [";
  for (size_t i = 0; i + 4 <= load.answer.size(); i += 4) {
    float value = 0;
    std::memcpy(&value, load.answer.data() + i, 4);
    std::cout << (i ? ", " : "") << value;
  }
  std::cout << "]}\n";
}
#else
int main() {
  std::cerr << "serve_load_grpc: built without gRPC\n";
  return 1;
}
#endif
