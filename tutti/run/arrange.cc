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

// By its times.
void choose(ArrangedGroup& group) {
  group.chosen = std::min_element(group.times.begin(), group.times.end(), [](const auto& a, const auto& b) {
                   return a.seconds < b.seconds;
                 })->arrangement;
}

// The least times of both, and what is best by them.
void add_times(ArrangedGroup& group, const std::vector<ArrangedGroup::Time>& others) {
  for (const auto& other : others) {
    const auto own =
        std::find_if(group.times.begin(), group.times.end(), [&](const auto& time) { return time.arrangement == other.arrangement; });
    if (own == group.times.end())
      group.times.push_back(other);
    else
      own->seconds = std::min(own->seconds, other.seconds);
  }
  if (group.times.size() > 1) group.reason.clear();
  choose(group);
}

// As it is kept: how often it was measured, and a line a group with the time of each way.
void keep(const std::string& key, const KeptArrangement& kept) {
  std::string text = fmt::format("measured {}\n", kept.measurements);
  for (const ArrangedGroup& group : kept.groups) {
    std::vector<std::string> words;
    for (const auto& [arrangement, seconds] : group.times) words.push_back(fmt::format("{} {}", name(arrangement), seconds));
    text += fmt::format("{}\n", fmt::join(words, " "));
  }
  DiskCache().store(key, text);
}

// Decisions of this process, by what was measured.
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
  void remember(const std::string& key, const std::vector<ArrangedGroup>& groups) {
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
      group.chosen = options_.wanted;
      group.reason = "asked for";
    }
  }

  // The whole program in each way, group by group.
  void measure(std::shared_ptr<CompileCache>& cache) {
    static Memory memory;
    const std::string key = fmt::format("arrangement\n{}\n{}{}: {}\n{} threads, {}\n{} groups\n{}", build_name(), processor_name(),
                                        device_->name(), device_->description(), options_.threads, tutti::name(options_.precision),
                                        groups_.size(), fingerprint(print_graph(graph_, 0)));
    if (memory.find(key, groups_)) return;
    const auto kept = kept_arrangement(key, groups_);
    if (kept && kept->measurements >= KeptArrangement::enough) {
      groups_ = kept->groups;
    } else {
      for (size_t g = 0; g < groups_.size(); ++g) {
        measure_group(g, cache);
        if (kept && !groups_[g].times.empty()) add_times(groups_[g], kept->groups[g].times);
      }
      if (std::all_of(groups_.begin(), groups_.end(), [](const ArrangedGroup& group) { return !group.times.empty(); }))
        keep(key, {kept ? kept->measurements + 1 : 1, groups_});
    }
    memory.remember(key, groups_);
  }

  Graph arranged() const {
    std::vector<RegionGroup> chosen;
    for (size_t g = 0; g < groups_.size(); ++g)
      if (const auto how = together(groups_[g].chosen)) chosen.push_back({regions_[g], *how});
    return chosen.empty() ? graph_.clone() : stack(graph_, chosen);
  }

 private:
  void measure_group(size_t g, std::shared_ptr<CompileCache>& cache) {
    ArrangedGroup& group = groups_[g];
    std::vector<Predictor> trials;
    std::vector<std::pair<int64_t, Arrangement>> kernels;  // where nothing can be measured
    for (Arrangement way : {Arrangement::merged, Arrangement::stacked, Arrangement::looped}) {
      group.chosen = way;
      CompileSettings settings{options_.threads, cache, nullptr, options_.precision};
      auto program = device_->compile(arranged(), settings);
      cache = settings.cache;
      if (!program->computes()) {
        kernels.emplace_back(program->stats().kernels, way);
        continue;
      }
      set_made_up_inputs(trials.emplace_back(device_, std::move(program)));
      group.times.push_back({way, 0});
      if (way != Arrangement::merged) continue;
      seconds_of(trials[0]);
      const double each = seconds_of(trials[0]) / static_cast<double>(members_);
      if (each < long_enough) continue;
      group.reason = fmt::format("a member takes {:.1f} ms, so how they are arranged matters little", each * 1e3);
      break;
    }
    if (!kernels.empty()) {
      group.chosen =
          std::min_element(kernels.begin(), kernels.end(), [](const auto& a, const auto& b) { return a.first < b.first; })->second;
      group.reason = fmt::format("{} does not compute, so the fewest kernels count: merged {}, stacked {}, looped {}", device_->name(),
                                 kernels[0].first, kernels[1].first, kernels[2].first);
      return;
    }
    const auto seconds = fastest(trials);
    for (size_t i = 0; i < seconds.size(); ++i) group.times[i].seconds = seconds[i];
    choose(group);
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

std::optional<KeptArrangement> kept_arrangement(const std::string& key, std::vector<ArrangedGroup> groups) {
  const auto text = DiskCache().find(key);
  if (!text) return {};
  KeptArrangement out{0, std::move(groups)};
  std::istringstream lines(*text);
  std::string line, word;
  if (!std::getline(lines, line)) return {};
  if (std::istringstream words(line); !(words >> word >> out.measurements) || word != "measured" || out.measurements < 1) return {};
  for (ArrangedGroup& group : out.groups) {
    if (!std::getline(lines, line)) return {};
    std::istringstream words(line);
    group.times.clear();
    for (double seconds = 0; words >> word;) {
      if (!is_arrangement(word) || arrangement_of(word) == Arrangement::measured || !(words >> seconds) || !(seconds > 0)) return {};
      group.times.push_back({arrangement_of(word), seconds});
    }
    if (group.times.empty()) return {};
    choose(group);
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
              const ArrangeOptions& options, std::shared_ptr<CompileCache>& cache, std::vector<ArrangedGroup>* groups) {
  const std::vector<MemberRegion> members = members_of(trace);
  if (members.size() < 2) return graph;
  Arranger arranger(graph, members, device, options);
  if (arranger.empty()) return graph;
  if (options.wanted == Arrangement::measured)
    arranger.measure(cache);
  else
    arranger.as_asked();
  Graph out = arranger.arranged();
  if (groups != nullptr) *groups = std::move(arranger.groups());
  return out;
}

}  // namespace tutti
