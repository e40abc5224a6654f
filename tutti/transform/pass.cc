#include "tutti/transform/pass.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/base/stopwatch.h"
#include "tutti/transform/rebuild.h"

namespace tutti {

namespace {

size_t count_nodes(const Graph& graph) {
  size_t count = graph.nodes().size();
  for (const Node& node : graph.nodes())
    if (node.body) count += count_nodes(*node.body);
  return count;
}

std::vector<Pass> without(std::span<const Pass> passes, const std::vector<std::string>& skip) {
  std::vector<std::string> known;
  for (const Pass& pass : passes) known.emplace_back(pass.name);
  for (const std::string& name : skip)
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail<InvalidArgument>("passes", "no pass is named '{}'{}", escape(name), did_you_mean(name, known));
  std::vector<Pass> out;
  for (const Pass& pass : passes)
    if (std::find(skip.begin(), skip.end(), pass.name) == skip.end()) out.push_back(pass);
  return out;
}

void verify_after(const Pass& pass, const Graph& graph) {
  try {
    verify(graph);
  } catch (const Error& error) {
    fail<InternalError>("passes", "after {}: {}", pass.name, error.what());
  }
}

}  // namespace

Graph run_passes(const Graph& graph, std::span<const Pass> passes, const PassOptions& options) {
  std::vector<Pass> list = without(passes, options.skip);
  Graph now = graph.clone();
  for (int round = 0; round < options.rounds; ++round) {
    Graph before = now.clone();
    for (const Pass& pass : list) {
      const Stopwatch watch;
      Graph next = pass.run(now);
      const double microseconds = watch.seconds() * 1e6;
      if (options.verify) verify_after(pass, next);
      if (options.report != nullptr) options.report->push_back({std::string(pass.name), microseconds, count_nodes(now), count_nodes(next)});
      now = std::move(next);
    }
    if (same_graph(before, now)) break;
  }
  return now;
}

}  // namespace tutti
