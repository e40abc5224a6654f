#include "tutti/run/arrange.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "tutti/base/disk_cache.h"
#include "tutti/base/error.h"
#include "tutti/base/stopwatch.h"
#include "tutti/run/ensemble.h"
#include "tutti/run/made_up.h"
#include "tutti/run/predictor.h"

namespace tutti {

namespace {

constexpr std::pair<std::string_view, Arrangement> arrangements[] = {
    {"auto", Arrangement::measured}, {"merged", Arrangement::merged}, {"stacked", Arrangement::stacked}, {"looped", Arrangement::looped}};

// Seconds a member: above, there is nothing to gain but much to compile.
constexpr double long_enough = 2e-3;

bool is_model(const keras::LayerTrace& layer) {
  return layer.class_name == "Functional" || layer.class_name == "Sequential" || layer.class_name == "Model" ||
         layer.class_name == Ensemble::class_name;
}

bool is_arrangement(std::string_view word) {
  return std::any_of(std::begin(arrangements), std::end(arrangements), [&](const auto& one) { return one.first == word; });
}

size_t nodes_of(const keras::LayerTrace& layer) { return layer.end_node - layer.first_node; }

double seconds_of(Predictor& trial) {
  const Stopwatch watch;
  trial.run();
  trial.synchronize();
  return watch.seconds();
}

// The fastest of some runs, taken in turns so that all see the machine alike.
std::vector<double> fastest(std::vector<Predictor>& trials) {
  constexpr double enough = 0.03;  // seconds, for each
  constexpr int least = 3, most = 200;
  std::vector<double> best(trials.size(), 1e30);
  for (Predictor& trial : trials) seconds_of(trial);
  double spent = 0;
  for (int round = 0; round < most && (round < least || spent < enough * static_cast<double>(trials.size())); ++round)
    for (size_t i = 0; i < trials.size(); ++i) {
      const double seconds = seconds_of(trials[i]);
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

// What was measured, as it is kept: how often, then a line a group of ways, each in so many parts and so many seconds.
std::string written(const std::vector<ArrangedGroup>& groups, int rounds) {
  std::string out = fmt::format("{}\n", rounds);
  for (const ArrangedGroup& group : groups) {
    for (const auto& [way, seconds] : group.times) out += fmt::format("{} {} {} ", name(way.arrangement), way.parts, seconds);
    out += "\n";
  }
  return out;
}

// What was decided in this process.
class Memory {
 public:
  bool find(const std::string& key, std::vector<ArrangedGroup>& groups) {
    std::lock_guard lock(mutex_);
    const auto found = known_.find(key);
    if (found == known_.end()) return false;
    for (size_t g = 0; g < groups.size(); ++g) {
      ArrangedGroup group = found->second[g];
      group.members = std::move(groups[g].members);
      groups[g] = std::move(group);
    }
    return true;
  }
  void store(const std::string& key, const std::vector<ArrangedGroup>& groups) {
    constexpr size_t most = 256;
    std::lock_guard lock(mutex_);
    if (known_.size() > most) known_.clear();
    known_[key] = groups;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::vector<ArrangedGroup>> known_;
};

class Arranger {
 public:
  Arranger(const Graph& graph, const std::vector<MemberRegion>& members, const std::shared_ptr<Device>& device,
           const ArrangeOptions& options)
      : graph_(graph), device_(device), options_(options) {
    std::vector<Region> regions;
    for (const MemberRegion& member : members) regions.push_back(member.region);
    for (const auto& alike : group_alike(graph, regions)) {
      ArrangedGroup& group = groups_.emplace_back();
      std::vector<Region>& own = regions_.emplace_back();
      for (size_t i : alike) {
        group.members.push_back(members[i].name);
        own.push_back(regions[i]);
      }
      members_ += alike.size();
    }
  }

  bool empty() const { return groups_.empty(); }
  std::vector<ArrangedGroup>& groups() { return groups_; }

  void as_asked() {
    for (ArrangedGroup& group : groups_) {
      group.chosen = {options_.wanted};
      group.reason = "asked for";
    }
  }

  // The whole program in each way, group by group.
  void measure() {
    static Memory memory;
    const std::string key = fmt::format("arrangement\n{}\n{}{}: {}\n{} threads, {}\n{} groups\n{}", build_name(), processor_name(),
                                        device_->name(), device_->description(), options_.threads, tutti::name(options_.precision),
                                        groups_.size(), fingerprint(print_graph(graph_, 0)));
    if (memory.find(key, groups_)) return;
    auto kept = kept_arrangement(key, groups_);
    if (kept && kept->rounds >= arrangement_rounds) {
      groups_ = std::move(kept->groups);
    } else {
      for (size_t g = 0; g < groups_.size(); ++g) measure_group(g, kept ? kept->groups[g].times : std::map<Way, double>());
      const bool measured = std::all_of(groups_.begin(), groups_.end(), [](const ArrangedGroup& group) { return !group.times.empty(); });
      if (measured) DiskCache().store(key, written(groups_, (kept ? kept->rounds : 0) + 1));
    }
    memory.store(key, groups_);
  }

  Graph arranged() const {
    std::vector<RegionGroup> chosen;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const auto how = together(groups_[g].chosen.arrangement);
      if (!how) continue;
      const auto& all = regions_[g];
      const size_t parts = groups_[g].chosen.parts;
      const auto place = [&](size_t part) { return all.begin() + static_cast<std::ptrdiff_t>(all.size() * part / parts); };
      for (size_t part = 0; part < parts; ++part) chosen.push_back({{place(part), place(part + 1)}, *how});
    }
    return chosen.empty() ? graph_.clone() : stack(graph_, chosen);
  }

 private:
  std::vector<Way> ways(size_t members) const {
    std::vector<Way> out = {{Arrangement::merged}, {Arrangement::stacked}, {Arrangement::looped}};
    // Parts of two members and more, nearly alike.
    const auto cores = static_cast<size_t>(device_->parts_at_once(options_.threads));
    const size_t longest = (members + cores - 1) / cores;
    if (cores > 1 && members >= 2 * cores && 10 * longest * cores <= 11 * members)
      for (Arrangement arrangement : {Arrangement::stacked, Arrangement::looped}) out.push_back({arrangement, cores});
    return out;
  }

  // `before`: what earlier processes measured.
  void measure_group(size_t g, const std::map<Way, double>& before) {
    ArrangedGroup& group = groups_[g];
    std::vector<Predictor> trials;
    std::vector<Way> tried;
    std::vector<std::pair<int64_t, Way>> kernels;  // where nothing can be measured
    for (const Way way : ways(group.members.size())) {
      group.chosen = way;
      CompileSettings settings{options_.threads, nullptr, nullptr, options_.precision};
      auto program = device_->compile(arranged(), settings);
      if (!program->computes()) {
        kernels.emplace_back(program->stats().kernels, way);
        continue;
      }
      set_made_up_inputs(trials.emplace_back(device_, std::move(program)));
      tried.push_back(way);
      if (way.arrangement != Arrangement::merged) continue;
      seconds_of(trials[0]);
      const double each = seconds_of(trials[0]) / static_cast<double>(members_);
      if (each < long_enough) continue;
      group.reason = fmt::format("a member takes {:.1f} ms, so how they are arranged matters little", each * 1e3);
      break;
    }
    if (!kernels.empty()) {
      group.chosen = std::min_element(kernels.begin(), kernels.end())->second;
      group.reason = fmt::format("{} does not compute, so the fewest kernels count: merged {}, stacked {}, looped {}", device_->name(),
                                 kernels[0].first, kernels[1].first, kernels[2].first);
      return;
    }
    const auto seconds = fastest(trials);
    group.times = before;
    for (size_t i = 0; i < seconds.size(); ++i) {
      const auto [known, is_new] = group.times.emplace(tried[i], seconds[i]);
      if (!is_new) known->second = std::min(known->second, seconds[i]);
    }
    if (group.times.size() > 1) group.reason.clear();
    group.choose();
  }

  const Graph& graph_;
  const std::shared_ptr<Device>& device_;
  const ArrangeOptions& options_;
  std::vector<ArrangedGroup> groups_;
  std::vector<std::vector<Region>> regions_;  // by group
  size_t members_ = 0;                        // in groups
};

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

std::string name(Way way) {
  return way.parts == 1 ? std::string(name(way.arrangement)) : fmt::format("{} in {}", name(way.arrangement), way.parts);
}

void ArrangedGroup::choose() {
  chosen = std::min_element(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->first;
}

std::optional<KeptArrangement> kept_arrangement(const std::string& key, std::vector<ArrangedGroup> groups) {
  const auto text = DiskCache().find(key);
  if (!text) return {};
  std::istringstream lines(*text);
  std::string line, word;
  KeptArrangement out{std::move(groups), 0};
  if (!std::getline(lines, line) || !(std::istringstream(line) >> out.rounds) || out.rounds < 1) return {};
  for (ArrangedGroup& group : out.groups) {
    if (!std::getline(lines, line)) return {};
    std::istringstream words(line);
    group.times.clear();
    while (words >> word) {
      Way way;
      double seconds = 0;
      if (!is_arrangement(word) || !(words >> way.parts >> seconds) || way.parts < 1 || way.parts > group.members.size()) return {};
      way.arrangement = arrangement_of(word);
      if (way.arrangement == Arrangement::measured || !(seconds > 0)) return {};
      group.times[way] = seconds;
    }
    if (group.times.empty()) return {};
    group.choose();
    group.reason = "measured before";
  }
  if (std::getline(lines, line)) return {};
  return out;
}

std::vector<MemberRegion> members_of(const std::vector<keras::LayerTrace>& trace) {
  std::vector<MemberRegion> out;
  // A model that is mostly models is taken apart, the outermost one always.
  const auto visit = [&](auto&& self, size_t i) -> void {
    size_t inner = 0;
    std::vector<size_t> children;
    for (size_t k = i + 1; k < trace.size() && trace[k].depth > trace[i].depth; ++k)
      if (trace[k].depth == trace[i].depth + 1 && is_model(trace[k])) {
        children.push_back(k);
        inner += nodes_of(trace[k]);
      }
    if (i == 0 || (!children.empty() && 2 * inner >= nodes_of(trace[i])))
      for (size_t child : children) self(self, child);
    else
      out.push_back({trace[i].name, {trace[i].first_node, trace[i].end_node}});
  };
  if (!trace.empty()) visit(visit, 0);
  return out;
}

Graph arrange(Graph graph, const std::vector<keras::LayerTrace>& trace, const std::shared_ptr<Device>& device,
              const ArrangeOptions& options, std::vector<ArrangedGroup>* groups) {
  const std::vector<MemberRegion> members = members_of(trace);
  if (members.size() < 2) return graph;
  Arranger arranger(graph, members, device, options);
  if (arranger.empty()) return graph;
  if (options.wanted == Arrangement::measured)
    arranger.measure();
  else
    arranger.as_asked();
  Graph out = arranger.arranged();
  if (groups != nullptr) *groups = std::move(arranger.groups());
  return out;
}

}  // namespace tutti
