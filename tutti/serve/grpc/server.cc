#include "tutti/serve/grpc/server.h"

#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <sstream>
#include <thread>
#include <vector>

#include "tutti/base/start_thread.h"
#include "tutti/serve/grpc/calls.h"
#include "tutti/serve/grpc/messages.h"
#include "tutti/serve/http/api.h"
#include "tutti/serve/protocol/v2_json.h"

namespace tutti::serve {

namespace {

using Context = grpc::CallbackServerContext;
using Reactor = grpc::ServerUnaryReactor;

using Service = inference::GRPCInferenceService;
template <class Base>
using Health =
    Service::WithCallbackMethod_ServerLive<Service::WithCallbackMethod_ServerReady<Service::WithCallbackMethod_ModelReady<Base>>>;
template <class Base>
using Description = Service::WithCallbackMethod_ServerMetadata<
    Service::WithCallbackMethod_ModelMetadata<Service::WithCallbackMethod_ModelConfig<Service::WithCallbackMethod_ModelStatistics<Base>>>>;
template <class Base>
using Repository = Service::WithCallbackMethod_RepositoryIndex<
    Service::WithCallbackMethod_RepositoryModelLoad<Service::WithCallbackMethod_RepositoryModelUnload<Base>>>;
template <class Base>
using SharedMemory = Service::WithCallbackMethod_SystemSharedMemoryStatus<
    Service::WithCallbackMethod_SystemSharedMemoryRegister<Service::WithCallbackMethod_SystemSharedMemoryUnregister<Base>>>;
// Tensors come as bytes, that who may not ask is told so before they are read, and that compressed ones are read within bounds.
template <class Base>
using Inference = Service::WithRawCallbackMethod_ModelInfer<Service::WithRawCallbackMethod_ModelStreamInfer<Base>>;

class InferenceService final : public Health<Description<Repository<SharedMemory<Inference<Service::Service>>>>> {
 public:
  explicit InferenceService(GrpcShared& shared) : shared_(shared) {}

  Reactor* ServerLive(Context* context, const inference::ServerLiveRequest*, inference::ServerLiveResponse* response) override {
    response->set_live(true);
    return finish(context, grpc::Status::OK);
  }
  Reactor* ServerReady(Context* context, const inference::ServerReadyRequest*, inference::ServerReadyResponse* response) override {
    response->set_ready(!shared_.scheduler.load().draining && shared_.models.ready());
    return finish(context, grpc::Status::OK);
  }
  Reactor* ModelReady(Context* context, const inference::ModelReadyRequest* request, inference::ModelReadyResponse* response) override {
    return answer(context, [&] {
      try {
        shared_.models.find(request->name(), version_from(request->version()));
        response->set_ready(true);
      } catch (const RequestError& e) {
        if (e.kind != FailureKind::not_ready && e.kind != FailureKind::not_found) throw;
      }
    });
  }
  Reactor* ServerMetadata(Context* context, const inference::ServerMetadataRequest*, inference::ServerMetadataResponse* response) override {
    return answer(context, [&] {
      response->set_name("tutti");
      response->set_version(shared_.options.version);
      for (const char* name : v2_extensions) response->add_extensions(name);
    });
  }
  Reactor* ModelMetadata(Context* context, const inference::ModelMetadataRequest* request,
                         inference::ModelMetadataResponse* response) override {
    return answer(context, [&] {
      auto model = shared_.models.find(request->name(), version_from(request->version()));
      std::vector<int64_t> versions;
      for (const VersionInfo& info : shared_.models.index(request->name()))
        if (info.state == ModelState::ready) versions.push_back(info.version);
      fill_metadata(*model, versions, *response);
    });
  }
  Reactor* ModelConfig(Context* context, const inference::ModelConfigRequest* request, inference::ModelConfigResponse* response) override {
    return answer(context, [&] {
      fill_config(*shared_.models.find(request->name(), version_from(request->version())), *response->mutable_config());
    });
  }
  Reactor* ModelStatistics(Context* context, const inference::ModelStatisticsRequest* request,
                           inference::ModelStatisticsResponse* response) override {
    return answer(context, [&] {
      const int64_t version = version_from(request->version());
      if (!request->name().empty()) shared_.models.find(request->name(), version);  // or not_found
      for (const VersionInfo& info : shared_.models.index(request->name()))
        if (info.state == ModelState::ready && (version < 0 || info.version == version))
          fill_statistics(info, *response->add_model_stats());
    });
  }
  Reactor* RepositoryIndex(Context* context, const inference::RepositoryIndexRequest* request,
                           inference::RepositoryIndexResponse* response) override {
    return answer(context, [&] {
      for (const VersionInfo& info : shared_.models.index()) {
        if (request->ready() && info.state != ModelState::ready) continue;
        auto& out = *response->add_models();
        out.set_name(info.name);
        out.set_version(std::to_string(info.version));
        out.set_state(std::string(v2_state(info.state)));
        out.set_reason(info.reason);
      }
    });
  }
  Reactor* RepositoryModelLoad(Context* context, const inference::RepositoryModelLoadRequest* request,
                               inference::RepositoryModelLoadResponse*) override {
    if (request->parameters_size() > 0)
      return finish(
          context, {grpc::StatusCode::INVALID_ARGUMENT, "[serve] models are loaded from the server's own files; parameters are not taken"});
    return change(context, [&](Models::Done done) { shared_.models.load(request->model_name(), std::move(done)); });
  }
  Reactor* RepositoryModelUnload(Context* context, const inference::RepositoryModelUnloadRequest* request,
                                 inference::RepositoryModelUnloadResponse*) override {
    return change(context, [&](Models::Done done) { shared_.models.unload(request->model_name(), std::move(done)); });
  }
  Reactor* SystemSharedMemoryStatus(Context* context, const inference::SharedMemoryRequest*, inference::SharedMemoryResponse*) override {
    return answer(context, [] {});  // no region
  }
  Reactor* SystemSharedMemoryRegister(Context* context, const inference::SharedMemoryRequest*, inference::SharedMemoryResponse*) override {
    return finish(context, no_shared_memory());
  }
  Reactor* SystemSharedMemoryUnregister(Context* context, const inference::SharedMemoryRequest*,
                                        inference::SharedMemoryResponse*) override {
    return finish(context, no_shared_memory());
  }

  Reactor* ModelInfer(Context* context, const grpc::ByteBuffer* request, grpc::ByteBuffer* response) override {
    if (grpc::Status status = access(*context); !status.ok()) return finish(context, status);
    return UnaryInfer::start(shared_, *context, *request, *response);
  }
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ModelStreamInfer(Context* context) override {
    return StreamInfer::start(shared_, *context, access(*context));
  }

 private:
  static grpc::Status no_shared_memory() {
    return {grpc::StatusCode::UNIMPLEMENTED,
            "[serve] the shared memory extensions are off; send tensors in the message, or use the local socket (--socket)"};
  }

  grpc::Status access(const Context& context) const {
    if (shared_.options.token.empty()) return grpc::Status::OK;
    constexpr std::string_view bearer = "Bearer ";
    const auto found = context.client_metadata().find("authorization");
    const std::string_view given =
        found == context.client_metadata().end() ? std::string_view() : std::string_view(found->second.data(), found->second.size());
    if (given.starts_with(bearer) && same_secret(given.substr(bearer.size()), shared_.options.token)) return grpc::Status::OK;
    return {grpc::StatusCode::UNAUTHENTICATED, "[serve] a bearer token is needed: the metadata 'authorization: Bearer TOKEN'"};
  }

  Reactor* finish(Context* context, const grpc::Status& status) const {
    const ActiveCall active(shared_.connections.activity_of(context->peer()));
    Reactor* reactor = context->DefaultReactor();
    reactor->Finish(status);
    return reactor;
  }

  // What is answered at once, by f().
  template <class F>
  Reactor* answer(Context* context, F&& f) {
    grpc::Status status = access(*context);
    if (status.ok()) {
      try {
        f();
      } catch (...) {
        status = status_of_exception();
      }
    }
    return finish(context, status);
  }

  // What is answered by the loader's thread.
  template <class F>
  Reactor* change(Context* context, F&& f) {
    if (grpc::Status status = access(*context); !status.ok()) return finish(context, status);
    Reactor* reactor = context->DefaultReactor();
    auto active = std::make_shared<ActiveCall>(shared_.connections.activity_of(context->peer()));
    try {
      f([reactor, active](const Failure& failure) { reactor->Finish(status_of(failure)); });
    } catch (...) {
      reactor->Finish(status_of_exception());
    }
    return reactor;
  }

  GrpcShared& shared_;
};

std::string file_text(const std::string& path, std::string_view option) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file || text.str().empty()) fail<InvalidArgument>("serve", "{}: no PEM can be read", option);
  return text.str();
}

std::shared_ptr<grpc::ServerCredentials> credentials_of(const GrpcOptions& options) {
  check_tls(options);
  if (options.tls_certificate.empty()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions tls;
  tls.pem_key_cert_pairs.push_back({file_text(options.tls_key, "--tls-key"), file_text(options.tls_certificate, "--tls-cert")});
  return grpc::SslServerCredentials(tls);
}

// gRPC waits for ever for a thread that the system does not give, so as many as it starts by itself are asked for first.
void check_threads() {
  const int cores = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 2u, 32u));
  const int most = 8 + 2 * cores;
  std::promise<void> enough;
  const std::shared_future<void> told = enough.get_future().share();
  std::vector<std::thread> threads;
  const auto end = [&] {
    enough.set_value();
    for (auto& thread : threads) thread.join();
  };
  try {
    for (int i = 0; i < most; ++i) threads.push_back(start_thread([told] { told.wait(); }));
  } catch (...) {
    end();
    throw;
  }
  end();
}

}  // namespace

bool has_grpc() { return true; }

class GrpcServer::Server {
 public:
  Server(Models& models, Scheduler& scheduler, GrpcOptions options)
      : options_(std::move(options)),
        connections_({.address = options_.address,
                      .most = options_.connections,
                      .silence = options_.idle_time + options_.request_time,
                      .counters = &options_.counters->grpc}),
        answers_(options_.request_time),
        shared_{models, scheduler, options_, connections_, answers_},
        service_(shared_) {
    check_threads();
    gpr_set_log_function([](gpr_log_func_args*) {});  // what matters is an error of ours, or the caller's status
    grpc::ServerBuilder builder;
    const std::shared_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials_of(options_));
    builder.RegisterService(&service_);
    builder.SetMaxReceiveMessageSize(static_cast<int>(std::min<size_t>(options_.request_bytes, 1u << 30)));
    builder.SetMaxSendMessageSize(-1);
    const auto argument = [&](const char* name, int64_t value) { builder.AddChannelArgument(name, static_cast<int>(value)); };
    argument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options_.streams);
    argument(GRPC_ARG_MAX_METADATA_SIZE, 16 << 10);
    argument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);  // it has no bound: parse_message()
    argument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, options_.header_time.count());
    // A client without a call is asked to go, and comes back when it has one. Who does neither is cut off: Connections.
    argument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, options_.idle_time.count());
    // A peer that is gone without a word is found out.
    argument(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
    argument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
    argument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
    grpc::ResourceQuota quota("tutti");
    constexpr size_t own_needs = 64 << 20;
    quota.Resize(2 * options_.budget->bytes() + own_needs);
    builder.SetResourceQuota(quota);
    server_ = builder.BuildAndStart();
    if (!server_) fail<InvalidArgument>("serve", "cannot serve gRPC on {}: is the certificate wrong?", address());
    connections_.start(
        [acceptor](int descriptor) {
          grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters made;
          made.fd = descriptor;
          acceptor->HandleNewConnection(&made);
        },
        [this] { answers_.cancel_late(); });
  }
  ~Server() { stop(std::chrono::milliseconds(0)); }

  std::string address() const { return connections_.address(); }
  void stop(std::chrono::milliseconds timeout) {
    connections_.stop();
    if (server_) server_->Shutdown(std::chrono::system_clock::now() + timeout);
    server_.reset();
  }

 private:
  const GrpcOptions options_;
  Connections connections_;
  SlowAnswers answers_;
  GrpcShared shared_;
  InferenceService service_;
  std::unique_ptr<grpc::Server> server_;
};

GrpcServer::GrpcServer(Models& models, Scheduler& scheduler, GrpcOptions options)
    : server_(std::make_unique<Server>(models, scheduler, std::move(options))) {}
GrpcServer::~GrpcServer() = default;
std::string GrpcServer::address() const { return server_->address(); }
void GrpcServer::stop(std::chrono::milliseconds timeout) { server_->stop(timeout); }

}  // namespace tutti::serve
