// Losses, optimizers, schedules and metrics as configs and job files name them: text, {"class_name": ..., "config": {...}} as Keras
// serializes, or {"name": ..., arguments} as job files write.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/keras/config.h"

namespace tutti::keras {

struct Named {
  std::string what, name;  // "loss", "log_cosh" as it was written
  Json arguments;          // an object
  bool of_keras = false;   // written by Keras, as in what a file was compiled with
  Config config() const { return {arguments, what + " '" + name + "'"}; }
};

// `what` names the kind in errors.
Named read_named(const Json& json, std::string what);
// Letters and digits in lower case: "LogCosh", "log_cosh" and "logcosh" are one.
std::string plain_name(std::string_view name);

// The class of Keras for a snake_case name: "log_cosh" -> "LogCosh".
std::string class_of_name(std::string_view name);

// The arguments of a row, separated by spaces. Behind the name of a number stands what it may be: a real one in an interval,
// "momentum[0,1]", "beta_1(0,1]", without ends where any will do, "epsilon(,)"; or a whole one from the first to the last, "k{1,}". The
// same is meant for each number of a list. Anything else has its name alone. Throws InvalidArgument for arguments outside of `options`,
// with the nearest, and for numbers that may not be.
void check_arguments(const Named& named, std::string_view options);
// The arguments as Keras takes them: it refuses whole numbers where it means real ones, and the other way round.
Json written_arguments(const Named& named, std::string_view options);
[[noreturn]] void refuse_unknown(const Named& named, const std::vector<std::string>& known);

// The row of a table whose `names`, separated by spaces, have the name.
template <class Rows>
const auto& find_row(const Rows& rows, const Named& named) {
  const std::string wanted = plain_name(named.name);
  std::vector<std::string> known;
  for (const auto& row : rows) {
    std::string_view rest = row.names;
    while (!rest.empty()) {
      const size_t space = rest.find(' ');
      const std::string_view one = rest.substr(0, space);
      if (plain_name(one) == wanted) return row;
      known.emplace_back(one);
      rest = space == std::string_view::npos ? std::string_view() : rest.substr(space + 1);
    }
  }
  refuse_unknown(named, known);
}

}  // namespace tutti::keras
