// Reads everything a file holds, as a hostile caller would: every object, every attribute, as numbers and as strings.
#pragma once

#include "tutti/base/error.h"
#include "tutti/keras/hdf5.h"

namespace tutti::keras {

// Errors of single objects do not end the walk; at most `objects` are visited, so that links to one data set cannot make it long.
inline void walk(const Hdf5File& file, int objects = 2000) {
  std::vector<std::string> pending = {""};
  auto attempt = [](auto&& f) {
    try {
      f();
    } catch (const InternalError&) {
      throw;
    } catch (const Error&) {
      return;
    }
  };
  while (!pending.empty() && objects-- > 0) {
    std::string path = std::move(pending.back());
    pending.pop_back();
    attempt([&] {
      for (const auto& name : file.attribute_names(path)) {
        attempt([&] { file.numbers(path, name); });
        attempt([&] { file.strings(path, name); });
      }
    });
    attempt([&] {
      auto kind = file.kind(path);
      if (kind == Hdf5File::Kind::group)
        for (const auto& child : file.children(path)) pending.push_back(path.empty() ? child : path + "/" + child);
      if (kind == Hdf5File::Kind::dataset && file.holds_strings(path)) file.read_strings(path);
      if (kind == Hdf5File::Kind::dataset) file.read(path);
    });
  }
}

}  // namespace tutti::keras
