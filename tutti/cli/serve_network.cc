#include "tutti/cli/serve_network.h"

#include "tutti/base/file.h"

namespace tutti::cli {

namespace {

// The one line of the file.
std::string token_of(const std::string& path) {
  if (path.empty()) return "";
  constexpr size_t least = 8, most = 4096;
  const auto bytes = read_all(*open_file(path), most);
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=";
  if (text.size() < least || text.find_first_not_of(allowed) != text.npos)
    fail<InvalidArgument>("serve", "--token-file must hold one line of at least {} letters, digits and -._~+/=", least);
  return text;
}

}  // namespace

void add_network_options(Options& options, NetworkSettings& settings) {
  options.option(settings.http, "--http", "[HOST]:PORT",
                 "Open Inference Protocol and TF Serving over REST, /metrics and a page; no host: loopback only");
  options.option(settings.grpc, "--grpc", "[HOST]:PORT", "Open Inference Protocol over gRPC; no host: loopback only");
  options.option(settings.token_file, "--token-file", "FILE", "HTTP and gRPC ask for this bearer token");
  options.option(settings.tls_certificate, "--tls-cert", "FILE", "Certificate chain (PEM): HTTP and gRPC speak TLS");
  options.option(settings.tls_key, "--tls-key", "FILE", "Its key (PEM)");
  options.option(settings.threads, "--http-threads", "Threads that read and write HTTP; default 2", 1, 256);
  options.option(settings.http_connections, "--http-connections", "HTTP connections, at most; default 1024", 1, 1'000'000);
  options.option(settings.grpc_connections, "--grpc-connections", "gRPC connections, at most; default 1024", 1, 1'000'000);
  options.option(settings.body_limit, "--body-limit", "MiB of a request over HTTP or gRPC, at most, also decompressed; default 64", 1,
                 1024);
  options.option(settings.body_total, "--body-total", "MiB of all such requests under way; default 1024", 1, 1 << 20);
  options.option(settings.request_time, "--request-time",
                 "Seconds for a request over HTTP or gRPC to arrive, and for its answer to be taken; default 60", 1, 86'400);
}

NetworkServers::NetworkServers(Console& console, serve::Models& models, serve::Scheduler& scheduler, const NetworkSettings& settings) {
  serve::NetworkOptions common;
  common.version = TUTTI_VERSION;
  common.token = token_of(settings.token_file);
  common.tls_certificate = settings.tls_certificate;
  common.tls_key = settings.tls_key;
  common.request_bytes = static_cast<size_t>(settings.body_limit) << 20;
  common.budget = std::make_shared<serve::MemoryBudget>(static_cast<size_t>(settings.body_total) << 20);
  common.request_time = std::chrono::seconds(settings.request_time);
  common.header_time = std::min(common.header_time, common.request_time);
  if (!settings.http.empty()) {
    serve::HttpOptions options{common};
    options.address = settings.http;
    options.connections = settings.http_connections;
    options.threads = static_cast<int>(settings.threads);
    http_.emplace(models, scheduler, options);
    console.tell(fmt::format("{}: {}", settings.tls_certificate.empty() ? "http" : "https", http_->address()));
  }
  if (!settings.grpc.empty()) {
    serve::GrpcOptions options{common};
    options.address = settings.grpc;
    options.connections = settings.grpc_connections;
    grpc_.emplace(models, scheduler, options);
    console.tell(fmt::format("grpc: {}", grpc_->address()));
  }
}

void NetworkServers::stop(std::chrono::milliseconds timeout) {
  if (http_) http_->stop(timeout);
  if (grpc_) grpc_->stop(timeout);
}

}  // namespace tutti::cli
