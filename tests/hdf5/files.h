// The files that make_files.py wrote, and their bytes as sources.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tutti/base/file.h"
#include "tutti/base/json.h"

namespace tutti::keras {

inline const std::string folder = TUTTI_TEST_DATA "/hdf5_files";

inline std::shared_ptr<const ByteSource> open_test_file(const std::string& name) { return open_file(folder + "/" + name + ".h5"); }

inline Json expected() {
  auto bytes = read_all(*open_file(folder + "/expected.json"), 64 << 20);
  return Json::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace tutti::keras
