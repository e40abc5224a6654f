// A graph on its way to XLA, for devices that are here and those that are not: passes, text, and what XLA made of it.
#pragma once

#include <mutex>

#include "tutti/device/device.h"
#include "tutti/device/xla/pjrt.h"
#include "tutti/device/xla/stablehlo.h"
#include "tutti/transform/evaluate.h"

namespace tutti::xla {

// Of one model: weights that were folded.
struct FoldCache : CompileCache {
  std::mutex mutex;
  FoldMemo folded;
};

struct Lowered {
  Graph graph;
  StableHlo program;
};
// Verifies, runs the passes and prints, for a platform: "cpu", "cuda", ... `device` begins the message about a weight without a value.
Lowered lower(const Graph& graph, const CompileSettings& settings, FoldMemo& folded, const std::string& device, std::string_view platform);

// XLA's flags for every program on a platform.
std::vector<XlaFlag> flags_of(std::string_view platform);

// Kernels and memory of a compiled program, and its steps where a report is asked for.
void describe(const Executable& executable, const Graph& graph, ProgramStats& stats, CompileReport* report);

}  // namespace tutti::xla
