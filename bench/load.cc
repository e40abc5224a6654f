// load FILE model|bytes: loads the model, or reads the file's bytes into memory, once. Prints one line of JSON.
// Once a process, because a second time would find its memory already mapped, and the two would not pay for it alike.
#include <tutti/keras/model.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>

#include "tutti/base/file.h"

namespace {

// VmHWM and not getrusage, whose figure a process inherits from the one that started it.
long peak_kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stol(line.substr(6));
  }
  return 0;
}

}  // namespace

int main(int count, char** words) try {
  if (count != 3) return 2;
  long before = peak_kilobytes();
  auto start = std::chrono::steady_clock::now();
  int64_t bytes = 0;
  if (std::string(words[2]) == "model") {
    auto model = tutti::keras::load(words[1]);
    if (!model.problems().empty()) tutti::fail<tutti::InvalidModel>("bench", "{}", model.problems().front());
    for (const auto* variable : model.variables().flatten()) bytes += static_cast<int64_t>(variable->value.bytes().size());
  } else {
    auto source = tutti::open_file(words[1]);
    tutti::Tensor all(tutti::DType::u8, {static_cast<int64_t>(source->size())});
    source->read(0, all.bytes());
    bytes = all.type().bytes();
  }
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("{\"seconds\": %g, \"bytes\": %ld, \"peak_bytes\": %ld}\n", seconds, static_cast<long>(bytes),
              (peak_kilobytes() - before) * 1024);
} catch (const tutti::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
