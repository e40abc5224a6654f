#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <new>

#include "tutti/base/descriptors.h"
#include "tutti/cli/console.h"
#include "tutti/cli/verb.h"
#include "tutti/device/xla/trace.h"

namespace tutti::cli {

namespace {

constexpr const char* about =
    "Runs Keras models (.keras, .h5) without Python.\n"
    "Exit codes: 0 done, 1 the work failed, 2 wrong usage. Errors and progress go to stderr.";

// The verb's name where one was meant, or "". The word behind an option that takes one is none.
std::string meant_verb(const CLI::App& app) {
  if (const auto verbs = app.get_subcommands(); !verbs.empty()) return verbs.front()->get_name();
  for (const std::string& word : app.remaining())
    if (!word.starts_with('-')) return word;
  return "";
}

std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  size_t end = text.find("\nRun with --help");
  return text.substr(0, end);
}

// The first option that was given and is none, or "". It may be why something else is missing.
std::string unknown_option(const CLI::App& app, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr && dynamic_cast<const CLI::RequiredError*>(&error) == nullptr) return "";
  const std::vector<std::string> words = app.remaining(true);
  if (std::find(words.begin(), words.end(), "--") != words.end()) return "";  // behind it stand no options
  for (const std::string& word : words)
    if (word.size() > 1 && word[0] == '-') return word.substr(0, word.find('='));
  return "";
}

std::vector<std::string> option_names(const CLI::App& verb) {
  std::vector<std::string> out;
  for (const CLI::App* app : {&verb, verb.get_parent()})
    for (const CLI::Option* option : app->get_options())
      for (const std::string& name : option->get_lnames()) out.push_back("--" + name);
  std::sort(out.begin(), out.end());  // --help is both's
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// A note each.
void note_lines(Console& console, std::string_view lines) {
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    console.note(escape(lines.substr(0, end), 1000));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
}

}  // namespace

void keep_inputs(const std::string& output, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs)
    if (std::error_code none; !output.empty() && std::filesystem::equivalent(output, input, none))
      throw UsageError("usage", fmt::format("'{}' is the input, and results would be written over it; hint: another -o", escape(output)));
}

std::vector<std::string> parts_of(const std::string& list, std::string_view option) {
  std::vector<std::string> out;
  for (size_t begin = 0; !list.empty() && begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    out.push_back(list.substr(begin, end - begin));
    if (out.back().empty()) throw UsageError("usage", fmt::format("{} is a list with commas between; got '{}'", option, list));
    begin = end + 1;
  }
  return out;
}

void Options::argument(std::string& target, const std::string& name, const std::string& help) {
  app_.add_option(name, target, help)->required()->type_name("");
}

void Options::optional_argument(std::string& target, const std::string& name, const std::string& help) {
  app_.add_option(name, target, help)->type_name("");
}

void Options::arguments(std::vector<std::string>& target, const std::string& name, const std::string& help) {
  app_.add_option(name, target, help)->required()->type_name("");
}

void Options::optional_arguments(std::vector<std::string>& target, const std::string& name, const std::string& help) {
  app_.add_option(name, target, help)->type_name("");
}

void Options::options(std::vector<std::string>& target, const std::string& names, const std::string& value, const std::string& help) {
  app_.add_option(names, target, help)->type_name(value)->expected(1)->take_all()->allow_extra_args(false);
}

void Options::option(std::string& target, const std::string& names, const std::string& value, const std::string& help) {
  app_.add_option(names, target, help)->type_name(value);
}

void Options::option(int64_t& target, const std::string& names, const std::string& help, int64_t least, int64_t most) {
  app_.add_option(names, target, help)->check(CLI::Range(least, most).description(""))->type_name("N");
}

void Options::choice(std::string& target, const std::string& names, const std::vector<std::string>& choices, const std::string& help) {
  std::string all;
  for (const auto& one : choices) all += (all.empty() ? "" : "|") + one;
  app_.add_option(names, target, help)->check(CLI::IsMember(choices).description(""))->type_name(all);
}

void Options::flag(bool& target, const std::string& names, const std::string& help) { app_.add_flag(names, target, help); }

void Options::footer(const std::string& text) {
  app_.footer(text + "\nEvery verb also takes --json, -q, -v and --cache FOLDER: tutti --help");
}

int run_command_line(std::span<const Verb> verbs, int argc, char** argv) {
  Console console;
  CLI::App app(about, "tutti");
  app.set_version_flag("--version", "tutti " TUTTI_VERSION);
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.require_subcommand(1);
  app.get_formatter()->column_width(30);
  app.get_formatter()->label("REQUIRED", "");
  app.get_formatter()->label("SUBCOMMAND", "VERB");
  app.get_formatter()->label("Subcommands", "Verbs");
  app.add_flag("--json", console.json, "Print machine-readable results on stdout");
  app.add_flag("-q,--quiet", console.quiet, "No progress, no warnings");
  app.add_option("--cache", "Where programs that XLA compiled are kept, or off; default TUTTI_CACHE, or the user's cache folder")
      ->type_name("FOLDER")
      ->each([](const std::string& folder) { setenv("TUTTI_CACHE", folder.c_str(), 1); });
  app.add_flag("-v,--verbose", console.verbose, "Say on stderr what is done and how long it takes");

  Action action;
  std::vector<std::string> names;
  for (const Verb& verb : verbs) {
    auto* sub = app.add_subcommand(std::string(verb.name), std::string(verb.help));
    sub->fallthrough();
    Options options(*sub);
    Action declared = verb.declare(options);
    sub->callback([&action, declared] { action = declared; });
    names.emplace_back(verb.name);
  }

  try {
    app.parse(argc, argv);
    ask_for_descriptors();  // for members, jobs and connections
    xla::hear_traces([console](std::string_view lines) mutable { note_lines(console, lines); });
    action(console);
    console.flush();
    return 0;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    const std::string verb = meant_verb(app);
    bool known = std::find(names.begin(), names.end(), verb) != names.end();
    if (verb.empty() && dynamic_cast<const CLI::RequiredError*>(&e) != nullptr)
      console.error(UsageError("usage", fmt::format("a verb is needed: {}; hint: tutti --help", fmt::join(names, ", "))).what());
    else if (!verb.empty() && !known)
      console.error(UsageError("usage", fmt::format("unknown verb '{}'{}; hint: tutti --help", verb, did_you_mean(verb, names))).what());
    else if (const std::string option = unknown_option(app, e); !option.empty())
      console.error(UsageError("usage", fmt::format("{} has no option '{}'{}; hint: tutti {} --help", verb, escape(option, 40),
                                                    did_you_mean(option, option_names(*app.get_subcommand(verb))), verb))
                        .what());
    else
      console.error(UsageError("usage", fmt::format("{}; hint: tutti {}--help", one_line(e.what()), known ? verb + " " : "")).what());
    return 2;
  } catch (const UsageError& e) {
    console.error(e.what());
    return 2;
  } catch (const Interrupted& e) {
    console.error(e.what());
    return e.code;
  } catch (const Error& e) {
    console.error(e.what());
    return 1;
  } catch (const std::bad_alloc&) {
    console.error("[memory] not enough memory for this model and data; hint: a smaller --batch");
    return 1;
  } catch (const std::exception& e) {
    console.error(InternalError("tutti", e.what()).what());
    return 1;
  }
}

}  // namespace tutti::cli
