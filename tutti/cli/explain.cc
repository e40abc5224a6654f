// tutti explain
#include "tutti/run/explain.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "tutti/cli/console.h"
#include "tutti/cli/model_argument.h"
#include "tutti/cli/results.h"
#include "tutti/cli/speeds.h"
#include "tutti/cli/verbs.h"
#include "tutti/run/fit.h"

namespace tutti::cli {

namespace {

struct ExplainSettings {
  std::string model, device{default_device}, plan = "auto", fit_plan = "auto", target, precision = "float32", devices;
  int64_t batch = 1, threads = 0, extent = 0, global_batch = 0;
};

constexpr size_t most_rows = 24;  // of steps, unless --verbose

Json microseconds(std::optional<double> seconds) { return seconds ? Json(*seconds * 1e6) : Json(); }

Json step_json(const ExplainedStep& step) {
  Json ops = Json::list(), refused = Json::list();
  for (const auto& op : step.ops) ops.push(op);
  for (const auto& one : step.refused) refused.push(JsonMembers{{"kernel", one.kernel}, {"op", one.op}, {"reason", one.reason}});
  Json out = JsonMembers{{"kernel", step.kernel},
                         {"ops", ops},
                         {"dtype", numpy_name(step.result.dtype)},
                         {"shape", shape_json(step.result.shape)},
                         {"depth", step.depth},
                         {"runs", step.runs},
                         {"threads", step.threads},
                         {"flops", step.all_flops()},
                         {"bytes", step.all_bytes()}};
  Json layers = Json::list();
  for (const auto& layer : step.layers) layers.push(layer);
  out.set("layers", layers);
  out.set("us", microseconds(step.seconds));
  out.set("predicted_us", microseconds(step.predicted));
  out.set("of_peak", step.of_peak() ? Json(*step.of_peak()) : Json());
  out.set("bound", step.predicted ? Json(step.memory_bound ? "memory" : "arithmetic") : Json());
  out.set("fallback", step.fallback);
  out.set("refused", refused);
  return out;
}

// {"groups": [{"members", "chosen", "parts", "us": {"merged": ..., "stacked in 2": ...}}]}: what is stacked, merged, looped, and what was
// measured.
Json plan_json(const std::vector<ArrangedGroup>& groups) {
  Json list = Json::list();
  for (const ArrangedGroup& group : groups) {
    Json members = Json::list(), times = Json::object();
    for (const auto& member : group.members) members.push(member);
    for (const auto& [way, seconds] : group.times) times.set(name(way), seconds * 1e6);
    list.push(JsonMembers{{"members", members},
                          {"chosen", name(group.chosen.arrangement)},
                          {"parts", group.chosen.parts},
                          {"us", times},
                          {"reason", group.reason}});
  }
  return groups.empty() ? Json::object() : Json(JsonMembers{{"groups", list}});
}

Json to_json(const ExplainSettings& settings, const Explanation& found) {
  Json inputs = Json::list(), passes = Json::list(), steps = Json::list(), fallbacks = Json::list();
  for (const Type& type : found.inputs) inputs.push(JsonMembers{{"dtype", numpy_name(type.dtype)}, {"shape", shape_json(type.shape)}});
  for (const auto& pass : found.passes)
    passes.push(JsonMembers{
        {"name", pass.name}, {"ms", pass.microseconds / 1e3}, {"nodes_before", pass.nodes_before}, {"nodes_after", pass.nodes_after}});
  for (const auto& step : found.steps) {
    Json row = step_json(step);
    if (step.fallback)
      fallbacks.push(JsonMembers{{"step", steps.size()},
                                 {"op", step.refused.empty() ? step.ops[0] : step.refused[0].op},
                                 {"us", row.at("us")},
                                 {"refused", row.at("refused")}});
    steps.push(std::move(row));
  }
  Json out = JsonMembers{{"model", settings.model}, {"device", found.device}, {"batch", settings.batch}, {"threads", found.threads}};
  out.set("inputs", inputs);
  out.set("kernels", found.stats.kernels);
  out.set("flops", found.flops);
  out.set("bytes", found.bytes);
  out.set("fusions", found.fusions);
  out.set("library_calls", found.library_calls);
  out.set("peak_memory_bytes", found.memory.device > 0 ? found.memory.device : found.memory.arena);
  out.set("memory", JsonMembers{{"weight_bytes", found.memory.weights},
                                {"constant_bytes", found.memory.constants},
                                {"packed_bytes", found.memory.packed},
                                {"arena_bytes", found.memory.arena},
                                {"without_reuse_bytes", found.memory.without_reuse}});
  out.set("passes", passes);
  out.set("plan", plan_json(found.groups));
  out.set("steps", steps);
  out.set("fallbacks", fallbacks);
  out.set("sum_us", microseconds(found.sum));
  out.set("whole_us", microseconds(found.whole));
  out.set("projected_us", microseconds(found.projected));
  out.set("runs", found.runs);
  out.set("machine", speeds_json(found.speeds));
  return out;
}

std::string time_text(std::optional<double> seconds) { return seconds ? three_digits(*seconds * 1e6) : "-"; }

std::string percent(std::optional<double> part) { return part ? fmt::format("{:.0f} %", *part * 100) : "-"; }

std::string count_text(int64_t count) { return count > 0 ? human_count(static_cast<double>(count)) : "-"; }

std::string times_text(size_t count) { return count > 1 ? fmt::format(" x{}", count) : ""; }

// Each op once, in the order of appearance: "convolution, add x2, maximum".
std::string ops_text(const std::vector<std::string>& ops, size_t longest) {
  std::vector<std::string> names;
  std::map<std::string, size_t> counts;
  for (const auto& op : ops)
    if (counts[op]++ == 0) names.push_back(op);
  std::string out;
  for (const auto& name : names) {
    std::string next = (out.empty() ? "" : ", ") + name + times_text(counts[name]);
    if (!out.empty() && out.size() + next.size() > longest) return out + ", ...";
    out += next;
  }
  return out;
}

// "dense, dense_1" or "dense ... dense_7": the last one tells how far it goes.
std::string layers_text(const std::vector<std::string>& layers, size_t longest) {
  if (layers.empty()) return "";
  std::string all;
  for (const std::string& layer : layers) all += (all.empty() ? "" : ", ") + layer;
  return all.size() <= longest ? all : layers.size() == 1 ? layers[0] : fmt::format("{} ... {}", layers.front(), layers.back());
}

std::string passes_table(const std::vector<PassReport>& passes, bool every) {
  std::vector<std::vector<std::string>> rows{{"PASS", "NODES", "CHANGE", "MS"}};
  std::vector<PassReport> shown;
  std::vector<size_t> runs;
  for (const PassReport& pass : passes) {
    auto same = std::find_if(shown.begin(), shown.end(), [&](const PassReport& other) { return !every && other.name == pass.name; });
    if (same == shown.end()) {
      shown.push_back(pass);
      runs.push_back(1);
      continue;
    }
    // Runs of one pass together: the nodes it found at first, and the changes of all.
    same->microseconds += pass.microseconds;
    same->nodes_after += pass.nodes_after - pass.nodes_before;
    ++runs[static_cast<size_t>(same - shown.begin())];
  }
  for (size_t i = 0; i < shown.size(); ++i) {
    auto change = static_cast<int64_t>(shown[i].nodes_after) - static_cast<int64_t>(shown[i].nodes_before);
    rows.push_back({shown[i].name + times_text(runs[i]),
                    every ? fmt::format("{} -> {}", shown[i].nodes_before, shown[i].nodes_after) : std::to_string(shown[i].nodes_before),
                    change == 0 ? "" : fmt::format("{:+}", change), fmt::format("{:.2f}", shown[i].microseconds / 1e3)});
  }
  return format_table(rows, {false, true, true, true});
}

// Equal steps, or one.
struct Row {
  ExplainedStep step;
  size_t count = 1;
};

bool is_like(const ExplainedStep& a, const ExplainedStep& b) {
  return a.depth == b.depth && a.kernel == b.kernel && a.ops == b.ops && a.result == b.result && a.flops == b.flops &&
         a.weight_bytes == b.weight_bytes && a.value_bytes == b.value_bytes;
}

// Steps are put together within the loop or branches that they are in.
std::vector<Row> fold(const std::vector<ExplainedStep>& steps, bool every) {
  std::vector<Row> rows;
  std::vector<size_t> first{0};  // by depth: the row where the present siblings begin
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto depth = static_cast<size_t>(steps[i].depth);
    const bool loop = i + 1 < steps.size() && steps[i + 1].depth > steps[i].depth;
    first.resize(depth + 1, rows.size());  // deeper than the step before: the first of its siblings
    auto same = std::find_if(rows.begin() + static_cast<std::ptrdiff_t>(first[depth]), rows.end(),
                             [&](const Row& row) { return !every && !loop && is_like(row.step, steps[i]); });
    if (same == rows.end()) {
      rows.push_back({steps[i]});
      continue;
    }
    ++same->count;
    same->step.runs += steps[i].runs;
    for (const std::string& layer : steps[i].layers)
      if (std::find(same->step.layers.begin(), same->step.layers.end(), layer) == same->step.layers.end())
        same->step.layers.push_back(layer);
    if (steps[i].seconds) *same->step.seconds += *steps[i].seconds;
    if (steps[i].predicted) *same->step.predicted += *steps[i].predicted;
  }
  return rows;
}

// Those that take longest, in their order.
std::vector<Row> longest(const std::vector<Row>& rows) {
  std::vector<size_t> order(rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rows[a].step.seconds > rows[b].step.seconds; });
  order.resize(std::min(order.size(), most_rows));
  std::sort(order.begin(), order.end());
  std::vector<Row> out;
  out.reserve(order.size());
  for (size_t i : order) out.push_back(rows[i]);
  return out;
}

double seconds_outside_loops(const std::vector<Row>& rows) {
  double sum = 0;
  for (const Row& row : rows)
    if (row.step.depth == 0) sum += row.step.seconds.value_or(0);
  return sum;
}

std::string steps_table(const Explanation& found, bool every) {
  const std::vector<Row> all = fold(found.steps, every), rows = every ? all : longest(all);
  std::vector<std::vector<std::string>> table{{"KERNEL", "COVERS", "OUTPUT", "FLOPS", "BYTES", "TIME us", "ROOF us", "OF PEAK"}};
  // Times, where steps have them; what published roofs allow, where nothing runs.
  const size_t columns = found.sum ? 8 : 5;
  const bool named = std::any_of(rows.begin(), rows.end(), [](const Row& row) { return !row.step.layers.empty(); });
  table[0].resize(columns);
  if (found.projected) table[0].push_back("ROOF us");
  for (const auto& [step, count] : rows) {
    std::string kernel = std::string(static_cast<size_t>(2 * step.depth), ' ') + step.kernel + times_text(count);
    std::string peak = percent(step.of_peak()) + (step.predicted ? step.memory_bound ? " m" : " a" : "");
    table.push_back({kernel, ops_text(step.ops, every ? 200 : 32), to_string(step.result), count_text(step.all_flops()),
                     human_bytes(step.all_bytes()), time_text(step.seconds), time_text(step.predicted), peak});
    table.back().resize(columns);
    if (found.projected) table.back().push_back(time_text(step.predicted) + (step.memory_bound ? " m" : " a"));
  }
  std::vector<bool> right{false, false, false, true, true, true, true, true};
  if (named) {
    table[0].insert(table[0].begin(), "LAYER");
    for (size_t i = 0; i < rows.size(); ++i) table[i + 1].insert(table[i + 1].begin(), layers_text(rows[i].step.layers, every ? 60 : 20));
    right.insert(right.begin(), false);
  }
  std::string out = format_table(table, right);
  if (rows.size() < all.size())
    out += fmt::format("and {} more, {} of the time; --verbose shows every step\n", all.size() - rows.size(),
                       percent(found.sum ? std::optional(1 - seconds_outside_loops(rows) / *found.sum) : std::nullopt));
  return out;
}

// Each reason once: "loop: no vector code for this op and dtype (remainder, sign)"; the ops where the step has several.
std::string reasons_text(const ExplainedStep& step) {
  if (step.refused.empty()) return "no other kernel has this op";
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  for (const auto& refused : step.refused) {
    std::string reason = refused.kernel + ": " + refused.reason;
    auto same = std::find_if(reasons.begin(), reasons.end(), [&](const auto& other) { return other.first == reason; });
    if (same == reasons.end()) same = reasons.insert(same, {reason, {}});
    same->second.push_back(refused.op);
  }
  std::string out;
  for (const auto& [reason, ops] : reasons) {
    out += (out.empty() ? "" : "; ") + reason;
    if (step.ops.size() > 1) out += " (" + ops_text(ops, 60) + ")";
  }
  return out;
}

// A line for each of these steps with what was refused, equal ones once.
std::string refusals_text(const std::vector<const ExplainedStep*>& steps) {
  std::vector<std::pair<std::string, size_t>> lines;
  for (const ExplainedStep* step : steps) {
    std::string what = step->fallback ? ops_text(step->ops, 60) : step->kernel;
    std::string line = fmt::format("  {} {}: {}", what, to_string(step->result), reasons_text(*step));
    auto same = std::find_if(lines.begin(), lines.end(), [&](const auto& other) { return other.first == line; });
    if (same == lines.end()) same = lines.insert(same, {line, 0});
    ++same->second;
  }
  std::string out;
  for (const auto& [line, times] : lines) out += line + times_text(times) + "\n";
  return out;
}

// What ran in the reference kernels of cpu, and why; with `every`, also what other kernels could have run and did not.
std::string choices_text(const Explanation& found, bool every) {
  std::vector<const ExplainedStep*> fallbacks, others;
  double seconds = 0;
  for (const auto& step : found.steps) {
    if (step.fallback) {
      fallbacks.push_back(&step);
      seconds += step.seconds.value_or(0);
    } else if (!step.refused.empty()) {
      others.push_back(&step);
    }
  }
  std::string out;
  if (!fallbacks.empty())
    out += fmt::format("\nin reference kernels ({} step{}, {} of the time):\n", fallbacks.size(), fallbacks.size() == 1 ? "" : "s",
                       percent(found.sum && *found.sum > 0 ? std::optional(seconds / *found.sum) : std::nullopt)) +
           refusals_text(fallbacks);
  if (every && !others.empty()) out += "\nchosen after others refused:\n" + refusals_text(others);
  return out;
}

// A line for each group of members alike.
std::string plan_text(const std::vector<ArrangedGroup>& groups) {
  std::string out;
  for (const ArrangedGroup& group : groups) {
    out += fmt::format("\nmembers   {} of one structure ('{}' ...): {}", group.members.size(), escape(group.members[0], 60),
                       name(group.chosen));
    std::string times;
    for (const auto& [way, seconds] : group.times)
      times += fmt::format("{}{} {} us", times.empty() ? "" : ", ", name(way), three_digits(seconds * 1e6));
    if (!times.empty()) out += fmt::format("; the program with them {}", times);
    if (!group.reason.empty()) out += fmt::format("; {}", group.reason);
  }
  return out.empty() ? out : out + "\n";
}

// How jobs alike are trained.
std::string fit_plan_text(const FitPlan& plan) {
  std::string out =
      fmt::format("jobs      {} of one structure ('{}'{}): {}", plan.jobs.size(), escape(plan.jobs[0], 60),
                  plan.jobs.size() > 1 ? " ..." : "", plan.stacked ? fmt::format("{} stacked in a program", plan.together) : "separate");
  for (const FitPlan::Time& time : plan.times)
    out += fmt::format("{} {} us", &time == &plan.times[0] ? "; a job's step alone" : fmt::format(", {} together", time.together),
                       three_digits(time.seconds * 1e6));
  if (!plan.reason.empty()) out += "; " + plan.reason;
  return out + "\n\n";
}

std::string to_text(const ExplainSettings& settings, const Explanation& found, const std::string& note, bool every) {
  std::string inputs;
  for (const Type& type : found.inputs) inputs += (inputs.empty() ? "" : ", ") + to_string(type);
  const bool compiled = found.fusions + found.library_calls > 0;  // by XLA, which has threads of its own
  std::string out = fmt::format("{} on {}{}: {}{}{}\n", escape(settings.model), found.device, times_text(found.replicas), inputs, note,
                                compiled ? "" : fmt::format(", {} thread{}", found.threads, found.threads == 1 ? "" : "s"));
  out += plan_text(found.groups);
  if (!found.passes.empty()) out += "\n" + passes_table(found.passes, every);
  out += "\n" + steps_table(found, every) + choices_text(found, every);
  out += fmt::format("\nkernels   {} a run{}, {} FLOPs, {} moved\n", grouped(found.stats.kernels),
                     compiled ? fmt::format(" ({} fusions, {} library calls)", found.fusions, found.library_calls) : "",
                     human_count(static_cast<double>(found.flops)), human_bytes(found.bytes));
  out += fmt::format(
      "memory    weights {}, constants {}{}; values {}{}{}\n", human_bytes(found.memory.weights), human_bytes(found.memory.constants),
      found.memory.packed > 0 ? fmt::format(", packed {}", human_bytes(found.memory.packed)) : "", human_bytes(found.memory.arena),
      found.memory.without_reuse > 0 ? fmt::format(" ({} if each had its own place)", human_bytes(found.memory.without_reuse)) : "",
      found.memory.device > 0 ? fmt::format("; {} in all on the device", human_bytes(found.memory.device)) : "");
  if (found.projected)
    return out + fmt::format(
                     "projected {} us: what arithmetic (a, {}FLOP/s) and memory (m, {}/s) of the device allow, launches left out; it is "
                     "not here, nothing was measured\n",
                     three_digits(*found.projected * 1e6), human_count(found.speeds[0].flops_per_second),
                     human_bytes(static_cast<int64_t>(found.speeds[0].bandwidth[0].bytes_per_second)));
  if (found.replicas > 1) return out + "times     none: programs on several devices are not measured here; hint: tutti scale\n";
  if (!found.whole) return out + fmt::format("times     none: {} does not compute\n", found.device);
  if (!found.sum)
    return out + fmt::format("times     a whole run {} us, median of {} runs; {} tells none of its steps\n",
                             three_digits(*found.whole * 1e6), found.runs, found.device);
  out += fmt::format("times     steps {} us, a whole run {} us: {}; medians of {} runs\n", three_digits(*found.sum * 1e6),
                     three_digits(*found.whole * 1e6), percent(*found.whole > 0 ? std::optional(*found.sum / *found.whole) : std::nullopt),
                     found.runs);
  if (found.speeds.empty()) return out;
  return out + "\nThe roofs: arithmetic (a), and reading as much again and again (m):\n" + speeds_table(found.speeds);
}

// The programs of a job file: one for each group of jobs alike.
void run_jobs(Console& console, ExplainSettings& settings) {
  FitOptions options;
  options.device = settings.device;
  options.threads = static_cast<int>(settings.threads);
  options.plan = fit_arrangement_of(settings.fit_plan);
  options.parallel.devices = parse_devices(settings.devices, settings.device);
  options.parallel.global_batch = settings.global_batch;
  if (!options.parallel.devices.empty()) options.device = options.parallel.devices[0];
  const auto found = explain_fit(read_jobs(settings.model), options, precision_of(settings.precision));
  if (!console.json) {
    for (const ExplainedFit& group : found)
      console.print(fit_plan_text(group.plan) + to_text(settings, group.step, "", console.verbose) + (&group == &found.back() ? "" : "\n"));
    return;
  }
  Json plans = Json::list(), programs = Json::list(), passes = Json::list();
  Json out = JsonMembers{{"jobs", settings.model}, {"device", found[0].step.device}};
  int64_t kernels = 0, flops = 0, bytes = 0, memory = 0;
  for (const ExplainedFit& group : found) {
    Json program = to_json(settings, group.step);
    kernels += program.at("kernels").as_int();
    flops += program.at("flops").as_int();
    bytes += program.at("bytes").as_int();
    memory += program.at("peak_memory_bytes").as_int();
    for (const Json& pass : program.at("passes").items()) passes.push(pass);
    plans.push(group.plan.json());
    programs.push(std::move(program));
  }
  out.set("kernels", kernels);
  out.set("flops", flops);
  out.set("bytes", bytes);
  out.set("peak_memory_bytes", memory);
  out.set("passes", passes);
  out.set("plan", plans);
  out.set("programs", programs);
  console.print(out.dump(2) + "\n");
}

void run(Console& console, ExplainSettings& settings) {
  add_target(settings.device, settings.target);
  open_asked_device(console, settings.device);
  if (is_job_file(settings.model)) return run_jobs(console, settings);
  if (!settings.devices.empty()) throw UsageError("usage", "--devices is for job files: steps of training; hint: without it");
  const auto loaded = load_with_progress(console, settings.model);
  const keras::AnyModel& model = *loaded;
  CompileOptions options{.batch = settings.batch,
                         .device = settings.device,
                         .threads = static_cast<int>(settings.threads),
                         .arrangement = arrangement_of(settings.plan),
                         .precision = precision_of(settings.precision)};
  const std::string note = bind_extents(model, settings.model, settings.extent, options);
  Explanation found = explain(model, options);
  console.print(console.json ? to_json(settings, found).dump(2) + "\n" : to_text(settings, found, note, console.verbose));
}

}  // namespace

Action explain(Options& options) {
  auto settings = std::make_shared<ExplainSettings>();
  options.argument(settings->model, "MODEL", std::string(model_help) + "; or a job file of tutti fit: one step of training");
  options.option(settings->batch, "--batch", "Samples computed together; default 1", 1, 1 << 24);
  add_device_option(options, settings->device);
  add_target_option(options, settings->target);
  add_precision_option(options, settings->precision);
  options.option(settings->threads, "--threads", "Threads of the device; default TUTTI_THREADS, or the cores", 1, 1024);
  add_plan_option(options, settings->plan);
  add_fit_plan_option(options, settings->fit_plan);
  options.option(settings->devices, "--devices", "N|A,B", "Of a job file: the step that one launch starts on so many devices");
  options.option(settings->global_batch, "--global-batch", "With --devices: samples of a step on all of them", 1, int64_t{1} << 30);
  add_extent_option(options, settings->extent);
  options.footer("Runs the model on random data for about a second. --verbose shows every pass and step, not only what takes long.");
  return [settings](Console& console) { run(console, *settings); };
}

}  // namespace tutti::cli
