// Load for servers of the Open Inference Protocol over HTTP with binary tensors: `serve_load HOST:PORT MODEL INPUT SIZES FILE CONNECTIONS
// SECONDS`. Each connection sends the sample of FILE (float32, shape 1 x SIZES) again as soon as it has its answer. One thread and epoll,
// so that on a small machine the load takes little from the server; prints requests a second, latencies, and the answer, which must be the
// same every time.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void give_up(const std::string& why) {
  std::cerr << "serve_load: " << why << "\n";
  std::exit(1);
}

struct Connection {
  int socket = -1;
  std::string received;
  Clock::time_point sent;
};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// The value of a header, or "".
std::string header(const std::string& head, const std::string& name) {
  const size_t at = head.find("\r\n" + name + ":");
  if (at == head.npos) return "";
  size_t begin = at + name.size() + 3;
  while (head[begin] == ' ') ++begin;
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

// Bytes of the first answer in the text: where its body begins, where that ends; end 0: it is not whole.
struct Extent {
  size_t body = 0, end = 0, json = 0;
};
Extent first_answer(const std::string& text) {
  const size_t at = text.find("\r\n\r\n");
  if (at == text.npos) return {};
  const std::string head = lower(text.substr(0, at + 2));
  if (text.compare(9, 3, "200") != 0) give_up("not answered: " + text.substr(0, 400));
  const std::string length = header(head, "content-length");
  if (length.empty()) give_up("an answer without Content-Length");
  Extent out{at + 4, at + 4 + std::stoul(length), 0};
  const std::string json = header(head, "inference-header-content-length");
  out.json = json.empty() ? 0 : std::stoul(json);
  return text.size() < out.end ? Extent{} : out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) give_up("HOST:PORT MODEL INPUT SIZES FILE CONNECTIONS SECONDS");
  const std::string address = argv[1], host = address.substr(0, address.rfind(':'));
  std::ifstream file(argv[5], std::ios::binary);
  std::stringstream sample;
  sample << file.rdbuf();
  const std::string tensor = sample.str();
  const std::string json = std::string("{\"inputs\":[{\"name\":\"") + argv[3] + "\",\"shape\":[1," + argv[4] +
                           "],\"datatype\":\"FP32\",\"parameters\":{\"binary_data_size\":" + std::to_string(tensor.size()) +
                           "}}],\"parameters\":{\"binary_data_output\":true}}";
  const std::string request =
      std::string("POST /v2/models/") + argv[2] + "/infer HTTP/1.1\r\nHost: " + address +
      "\r\nContent-Type: application/octet-stream\r\nInference-Header-Content-Length: " + std::to_string(json.size()) +
      "\r\nContent-Length: " + std::to_string(json.size() + tensor.size()) + "\r\n\r\n" + json + tensor;
  sockaddr_in place = {};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  if (inet_pton(AF_INET, host.c_str(), &place.sin_addr) != 1) give_up("an address of four numbers is needed");
  std::vector<Connection> connections(std::stoul(argv[6]));
  const int poll = epoll_create1(0);
  const auto send = [&](Connection& connection) {
    connection.sent = Clock::now();
    // Blocking: the server reads requests, and they are small.
    if (::send(connection.socket, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size()))
      give_up("cannot send");
  };
  for (size_t i = 0; i < connections.size(); ++i) {
    connections[i].socket = ::socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connections[i].socket, reinterpret_cast<sockaddr*>(&place), sizeof place) != 0) give_up("cannot connect");
    const int on = 1;
    setsockopt(connections[i].socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = i;
    epoll_ctl(poll, EPOLL_CTL_ADD, connections[i].socket, &event);
    send(connections[i]);
  }
  const auto begin = Clock::now();
  const auto warm = begin + std::chrono::milliseconds(500);
  const auto end = warm + std::chrono::milliseconds(static_cast<int64_t>(std::stod(argv[7]) * 1000));
  std::vector<double> latencies;
  std::string answer, buffer(1 << 16, '\0');
  epoll_event events[256];
  while (Clock::now() < end) {
    const int ready = epoll_wait(poll, events, 256, 1000);
    for (int e = 0; e < ready; ++e) {
      Connection& connection = connections[events[e].data.u64];
      const ssize_t got = recv(connection.socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got <= 0) give_up("the connection was closed");
      connection.received.append(buffer.data(), static_cast<size_t>(got));
      const Extent extent = first_answer(connection.received);
      if (extent.end == 0) continue;
      const std::string values = connection.received.substr(extent.body + extent.json, extent.end - extent.body - extent.json);
      if (answer.empty()) answer = values;
      // Bits may differ between batch sizes; a mean over rows of all connections would hide a swapped one, so each is compared.
      if (values.size() != answer.size()) give_up("answers of different sizes");
      for (size_t i = 0; i + 4 <= values.size(); i += 4) {
        float a = 0, b = 0;
        std::memcpy(&a, values.data() + i, 4);
        std::memcpy(&b, answer.data() + i, 4);
        if (!(std::abs(a - b) <= 1e-4f * std::max(1.0f, std::abs(b)))) give_up("answers that differ");
      }
      connection.received.erase(0, extent.end);
      const auto now = Clock::now();
      if (now > warm) latencies.push_back(std::chrono::duration<double>(now - connection.sent).count());
      send(connection);
    }
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - warm).count();
  if (latencies.empty()) give_up("no answer in time");
  std::sort(latencies.begin(), latencies.end());
  std::cout << "{\"per_second\": " << static_cast<double>(latencies.size()) / seconds
            << ", \"p50_us\": " << latencies[latencies.size() / 2] * 1e6 << ", \"p99_us\": " << latencies[latencies.size() * 99 / 100] * 1e6
            << ", \"answer\": [";
  for (size_t i = 0; i + 4 <= answer.size(); i += 4) {
    float value = 0;
    std::memcpy(&value, answer.data() + i, 4);
    std::cout << (i ? ", " : "") << value;
  }
  std::cout << "]}\n";
}
