// What a job file says of a source of data beside its file, checked.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/run/fit_job.h"

namespace tutti {

// The options of a source by name; one that is not `known` belongs to data of another kind. `what` names the source in errors.
class SourceOptions {
 public:
  SourceOptions(const DataSource& source, std::string what, std::initializer_list<const char*> known);
  const Json* find(const char* key) const { return source_.options.find(key); }
  std::string text(const char* key, const std::string& otherwise = "") const;
  std::string choice(const char* key, const std::vector<std::string>& names, const std::string& otherwise) const;
  int64_t whole(const char* key, int64_t otherwise) const;
  bool flag(const char* key) const;
  std::vector<std::string> names(const char* key) const;
  // 0.5, "1/255" or [0.5, 0.4, 0.3], as the command line writes it; with `between` the numbers.
  std::string numbers(const char* key, const char* between) const;
  [[noreturn]] void refuse(const char* key, std::string_view rule, const Json& value) const;

 private:
  const DataSource& source_;
  std::string what_;
};

// For errors: the first ones in quotes.
std::string list_of_names(const std::vector<std::string>& names);

// Lists by name: of a table { a = [...], b = [...] }, or one list for the only one. Those that are not `needed` may be missing: null.
std::vector<Json> lists_by_name(const Json& json, const std::vector<std::string>& names, const char* key,
                                const std::vector<bool>& needed = {});

}  // namespace tutti
