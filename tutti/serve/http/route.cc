#include "tutti/serve/http/route.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace tutti::serve {

namespace {

constexpr size_t longest_segment = 256, most_segments = 8;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return {};
    const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return {};
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

// "/a/b%20c?x" -> a, "b c"; proxies may say all of it, "http://host/a".
std::optional<std::vector<std::string>> segments_of(std::string_view target) {
  if (target.starts_with("http://") || target.starts_with("https://")) {
    const size_t host = target.find("//") + 2;
    target.remove_prefix(std::min(target.find('/', host), target.size()));
    if (target.empty()) target = "/";
  }
  target = target.substr(0, target.find_first_of("?#"));
  if (target.empty() || target[0] != '/') return {};
  std::vector<std::string> out;
  for (size_t at = 1; at <= target.size();) {
    const size_t end = std::min(target.find('/', at), target.size());
    auto segment = percent_decoded(target.substr(at, end - at));
    if (!segment || segment->size() > longest_segment || out.size() == most_segments) return {};
    out.push_back(std::move(*segment));
    at = end + 1;
  }
  if (!out.empty() && out.back().empty()) out.pop_back();  // "/v2/" is "/v2"
  return out;
}

// Takes "/versions/V" out of the segments from `at` on.
std::string take_version(std::vector<std::string>& segments, size_t at) {
  if (segments.size() < at + 2 || segments[at] != "versions") return "";
  std::string out = segments[at + 1];
  segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(at), segments.begin() + static_cast<std::ptrdiff_t>(at) + 2);
  return out;
}

Route route_v2(std::vector<std::string> parts) {
  const auto is = [&](size_t i, std::string_view name) { return i < parts.size() && parts[i] == name; };
  const size_t count = parts.size();
  if (count == 1) return {Endpoint::server, "", "", "GET"};
  if (is(1, "health") && count == 3) {
    if (parts[2] == "live") return {Endpoint::live, "", "", "GET"};
    if (parts[2] == "ready") return {Endpoint::ready, "", "", "GET"};
  }
  if (is(1, "repository")) {
    if (is(2, "index") && count == 3) return {Endpoint::index, "", "", "POST"};
    if (is(2, "models") && count == 5 && is(4, "load")) return {Endpoint::load, parts[3], "", "POST"};
    if (is(2, "models") && count == 5 && is(4, "unload")) return {Endpoint::unload, parts[3], "", "POST"};
  }
  if (is(1, "systemsharedmemory") || is(1, "cudasharedmemory")) return {Endpoint::shared_memory, "", "", "GET POST"};
  if (!is(1, "models") || count < 3 || parts[2].empty()) return {};
  if (count == 3 && parts[2] == "stats") return {Endpoint::statistics, "", "", "GET"};
  std::string version = take_version(parts, 3), model = parts[2];
  if (parts.size() == 3) return {Endpoint::metadata, model, version, "GET"};
  if (parts.size() > 4) return {};
  if (parts[3] == "infer") return {Endpoint::infer, model, version, "POST"};
  if (parts[3] == "ready") return {Endpoint::model_ready, model, version, "GET"};
  if (parts[3] == "stats") return {Endpoint::statistics, model, version, "GET"};
  if (parts[3] == "config") return {Endpoint::config, model, version, "GET"};
  return {};
}

Route route_v1(std::vector<std::string> parts) {
  if (parts.size() < 3 || parts[1] != "models") return {};
  const bool metadata = parts.size() > 3 && parts.back() == "metadata";
  if (metadata) parts.pop_back();
  std::string& last = parts.back();
  std::string method;
  if (size_t colon = last.rfind(':'); colon != last.npos) {
    method = last.substr(colon + 1);
    last.resize(colon);
  }
  std::string version = take_version(parts, 3), model = parts[2];
  if (parts.size() != 3 || model.empty() || (metadata && !method.empty())) return {};
  if (metadata) return {Endpoint::tf_metadata, model, version, "GET"};
  if (method.empty()) return {Endpoint::tf_status, model, version, "GET"};
  return {method == "predict" ? Endpoint::tf_predict : Endpoint::tf_other, model, version, "POST"};
}

}  // namespace

Route route_of(std::string_view target) {
  auto parts = segments_of(target);
  if (!parts) return {};
  if (parts->empty()) return {Endpoint::page, "", "", "GET"};
  if (parts->size() == 1 && (*parts)[0] == "metrics") return {Endpoint::metrics, "", "", "GET"};
  if ((*parts)[0] == "v2") return route_v2(std::move(*parts));
  if ((*parts)[0] == "v1") return route_v1(std::move(*parts));
  return {};
}

}  // namespace tutti::serve
