// Numbers over steps in a file that TensorBoard shows while it grows.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace tutti {

// What is added waits in memory until flush(), which appends it: a run of a thousand jobs holds no file open. TensorBoard finds the file by
// the "tfevents" in its name.
class EventFile {
 public:
  explicit EventFile(std::string path) : path_(std::move(path)) {}

  // A number each by these names, at the time of the call.
  void add(int64_t step, std::span<const std::string> names, std::span<const double> values);
  // The first one replaces what a former run left. Throws InvalidArgument with path and reason.
  void flush();

 private:
  std::string path_, waiting_;
  bool begun_ = false;
};

}  // namespace tutti
