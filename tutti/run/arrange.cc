#include "tutti/run/arrange.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "tutti/base/error.h"
#include "tutti/base/stopwatch.h"
#include "tutti/run/ensemble.h"
#include "tutti/run/made_up.h"

namespace tutti {

namespace {

constexpr std::pair<std::string_view, Arrangement> arrangements[] = {
    {"auto", Arrangement::measured}, {"merged", Arrangement::merged}, {"stacked", Arrangement::stacked}, {"looped", Arrangement::looped}};

// More members than this are measured by as many of them: all three ways cost a member what it costs.
constexpr size_t most_measured = 32;
// Seconds a member: above, there is nothing to gain but much to compile.
constexpr double long_enough = 2e-3;

bool is_model(const keras::LayerTrace& layer) {
  return layer.class_name == "Functional" || layer.class_name == "Sequential" || layer.class_name == "Model" ||
         layer.class_name == Ensemble::class_name;
}

size_t nodes_of(const keras::LayerTrace& layer) { return layer.end_node - layer.first_node; }

// A program on made-up data, to be timed.
class Trial {
 public:
  Trial(Device& device, const Graph& graph, int threads) : device_(device) {
    CompileSettings settings{threads};
    program_ = device.compile(graph, settings);
    std::mt19937 random(1);
    for (const Type& type : program_->input_types()) {
      inputs_.push_back(device.allocate(type));
      input_pointers_.push_back(inputs_.back().get());
      device.to_device(made_up(type, random).bytes(), *inputs_.back());
    }
    for (const Type& type : program_->output_types()) output_pointers_.push_back(outputs_.emplace_back(device.allocate(type)).get());
  }

  double run() {
    const Stopwatch watch;
    program_->run(input_pointers_, output_pointers_);
    device_.synchronize();
    return watch.seconds();
  }

 private:
  Device& device_;
  std::unique_ptr<Program> program_;
  std::vector<std::unique_ptr<Buffer>> inputs_, outputs_;
  std::vector<Buffer*> input_pointers_, output_pointers_;
};

// The fastest of some runs, taken in turns so that all see the machine alike.
std::vector<double> fastest(std::vector<Trial>& trials) {
  constexpr double enough = 0.03;  // seconds, for each
  constexpr int least = 3, most = 200;
  std::vector<double> best(trials.size(), 1e30);
  for (Trial& trial : trials) trial.run();
  double spent = 0;
  for (int round = 0; round < most && (round < least || spent < enough * static_cast<double>(trials.size())); ++round)
    for (size_t i = 0; i < trials.size(); ++i) {
      const double seconds = trials[i].run();
      best[i] = std::min(best[i], seconds);
      spent += seconds;
    }
  return best;
}

std::optional<Together> together(Arrangement arrangement) {
  if (arrangement == Arrangement::stacked) return Together::stacked;
  if (arrangement == Arrangement::looped) return Together::looped;
  return {};
}

// Decisions of this process by what was measured.
class Memory {
 public:
  std::optional<ArrangedGroup> find(const std::string& key) {
    std::lock_guard lock(mutex_);
    auto found = groups_.find(key);
    return found == groups_.end() ? std::nullopt : std::optional(found->second);
  }
  void store(const std::string& key, ArrangedGroup group) {
    std::lock_guard lock(mutex_);
    if (groups_.size() > 4096) groups_.clear();
    groups_[key] = std::move(group);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, ArrangedGroup> groups_;
};

void measure(const Graph& graph, std::vector<Region> regions, Device& device, const ArrangeOptions& options, ArrangedGroup& out) {
  static Memory memory;
  const size_t members = regions.size();
  regions.resize(std::min(members, most_measured));
  std::vector<Region> inside;
  const Graph merged = extract(graph, regions, inside);
  const std::string key = fmt::format("{} {} {}\n{}", device.name(), options.threads, members, print_graph(merged, 0));
  if (auto known = memory.find(key)) {
    known->members = std::move(out.members);
    out = std::move(*known);
    out.remembered = true;
    return;
  }
  out.measured_members = static_cast<int64_t>(regions.size());
  std::vector<Trial> trials;
  trials.emplace_back(device, merged, options.threads);
  trials[0].run();
  const double first = trials[0].run();
  out.times.push_back({Arrangement::merged, first});
  if (first > long_enough * static_cast<double>(regions.size())) {
    out.reason =
        fmt::format("a member takes {:.1f} ms, so how they are arranged matters little", first * 1e3 / static_cast<double>(regions.size()));
  } else {
    for (Arrangement other : {Arrangement::stacked, Arrangement::looped}) {
      const RegionGroup groups[] = {{inside, *together(other)}};
      trials.emplace_back(device, stack(merged, groups), options.threads);
      out.times.push_back({other, 0});
    }
    const auto seconds = fastest(trials);
    for (size_t i = 0; i < seconds.size(); ++i) out.times[i].seconds = seconds[i];
  }
  out.chosen =
      std::min_element(out.times.begin(), out.times.end(), [](const auto& a, const auto& b) { return a.seconds < b.seconds; })->arrangement;
  memory.store(key, out);
}

}  // namespace

std::string_view name(Arrangement arrangement) {
  for (const auto& [name, value] : arrangements)
    if (value == arrangement) return name;
  fail<InternalError>("ensemble", "an arrangement without a name");
}

const std::vector<std::string>& arrangement_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const auto& [name, value] : arrangements) out.emplace_back(name);
    return out;
  }();
  return names;
}

Arrangement arrangement_of(std::string_view name) {
  for (const auto& [known, value] : arrangements)
    if (known == name) return value;
  fail<InvalidArgument>("ensemble", "no arrangement '{}'{}", name, did_you_mean(name, arrangement_names()));
}

std::vector<MemberRegion> members_of(const std::vector<keras::LayerTrace>& trace) {
  std::vector<MemberRegion> out;
  // A model that is mostly models is taken apart, the outermost one always.
  const auto visit = [&](auto&& self, size_t i) -> size_t {  // gives where the next layer beside it stands
    size_t inner = 0, end = i + 1;
    std::vector<size_t> children;
    for (; end < trace.size() && trace[end].depth > trace[i].depth; ++end)
      if (trace[end].depth == trace[i].depth + 1 && is_model(trace[end])) {
        children.push_back(end);
        inner += nodes_of(trace[end]);
      }
    if (i == 0 || (!children.empty() && 2 * inner >= nodes_of(trace[i])))
      for (size_t child : children) self(self, child);
    else
      out.push_back({trace[i].name, {trace[i].first_node, trace[i].end_node}});
    return end;
  };
  if (!trace.empty()) visit(visit, 0);
  return out;
}

Graph arrange(Graph graph, const std::vector<keras::LayerTrace>& trace, Device& device, const ArrangeOptions& options,
              std::vector<ArrangedGroup>* groups) {
  const std::vector<MemberRegion> members = members_of(trace);
  if (members.size() < 2) return graph;
  std::vector<Region> regions;
  for (const MemberRegion& member : members) regions.push_back(member.region);
  std::vector<RegionGroup> chosen;
  for (const auto& alike : group_alike(graph, regions)) {
    ArrangedGroup group;
    std::vector<Region> own;
    for (size_t i : alike) {
      group.members.push_back(members[i].name);
      own.push_back(regions[i]);
    }
    if (options.wanted == Arrangement::measured) {
      measure(graph, own, device, options, group);
    } else {
      group.chosen = options.wanted;
      group.reason = "asked for";
    }
    if (const auto how = together(group.chosen)) chosen.push_back({std::move(own), *how});
    if (groups != nullptr) groups->push_back(std::move(group));
  }
  return chosen.empty() ? std::move(graph) : stack(graph, chosen);
}

}  // namespace tutti
