// A verb of the command line: a function that declares its arguments and returns what to do with them. CLI11 stays in command_line.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/error.h"

namespace CLI {
class App;
}

namespace tutti::cli {

// Asked for what the program does not offer: exit code 2.
class UsageError : public Error {
  using Error::Error;
};

// Ended by a signal, what is finished kept: the signal's exit code.
class Interrupted : public Error {
 public:
  Interrupted(int exit_code, std::string_view message) : Error("interrupted", message), code(exit_code) {}
  const int code;
};

// Calls f. The name of a device or a format that does not exist is a wrong argument, not failed work: its InvalidArgument becomes a
// UsageError.
template <class F>
void as_usage(F&& f) {
  try {
    f();
  } catch (const InvalidArgument& e) {
    std::string_view text = e.what();
    throw UsageError("usage", text.substr(text.find("] ") + 2));
  }
}

// The value of an option that is a list: "a,b" -> a, b. An empty part is a UsageError.
std::vector<std::string> parts_of(const std::string& list, std::string_view option);

// A UsageError where results would take the place of what they are made from.
void keep_inputs(const std::string& output, const std::vector<std::string>& inputs);

// Declares a verb's arguments; the targets live until the verb is done.
class Options {
 public:
  explicit Options(CLI::App& app) : app_(app) {}
  void argument(std::string& target, const std::string& name, const std::string& help);  // by position, required
  void optional_argument(std::string& target, const std::string& name, const std::string& help);
  void arguments(std::vector<std::string>& target, const std::string& name, const std::string& help);  // one or more
  void optional_arguments(std::vector<std::string>& target, const std::string& name, const std::string& help);
  void option(std::string& target, const std::string& names, const std::string& value, const std::string& help);
  void option(int64_t& target, const std::string& names, const std::string& help, int64_t least, int64_t most);
  void options(std::vector<std::string>& target, const std::string& names, const std::string& value,
               const std::string& help);  // repeatable
  void choice(std::string& target, const std::string& names, const std::vector<std::string>& choices, const std::string& help);
  void flag(bool& target, const std::string& names, const std::string& help);
  void footer(const std::string& text);  // after the options, in --help

 private:
  CLI::App& app_;
};

class Console;
using Action = std::function<void(Console&)>;  // an error is thrown, and makes the exit code

struct Verb {
  std::string_view name, help;
  Action (*declare)(Options&);
};

// Parses, runs the one verb that is asked for, reports errors; gives the exit code.
int run_command_line(std::span<const Verb> verbs, int argc, char** argv);

}  // namespace tutti::cli
