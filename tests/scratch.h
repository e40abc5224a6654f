// Files for one test, gone with it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>

#include "tutti/base/file.h"

namespace tutti {

class Scratch {
 public:
  Scratch() : folder_(std::filesystem::temp_directory_path() / ("tutti_test_" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~Scratch() { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  size_t files() const { return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {})); }

 private:
  std::filesystem::path folder_;
};

inline std::string slurp(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

inline std::string text_of(const ByteSource& source) {
  std::string out(source.size(), '\0');
  source.read(0, std::as_writable_bytes(std::span(out)));
  return out;
}

// A file that make_arrays.py saved.
inline std::string numpy_file(const std::string& name) { return std::string(TUTTI_TEST_DATA) + "/data_arrays/" + name; }

// EXPECT_PRED2(contains, text, part) shows both when it fails.
inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

// The message of the E that `f` throws; another error, or none, fails the test.
template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "another kind of error: " << e.what();
    return "";
  }
  ADD_FAILURE() << "no error";
  return "";
}

}  // namespace tutti
