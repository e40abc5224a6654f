// What a compiled model does and how long each part takes: `tutti explain`, for programs.
#pragma once

#include "tutti/device/report.h"
#include "tutti/run/predictor.h"

namespace tutti {

struct ExplainedStep : StepReport {
  // Of all its runs in one run of the program; nothing where nothing is measured.
  std::optional<double> seconds;
  std::optional<double> predicted;  // what the roofs allow: the later of its arithmetic and of its bytes
  bool memory_bound = false;        // which of the two that is
  // Of the roof that binds, as a part of 1; above 1 for kernels that need fewer operations than are counted (Winograd).
  std::optional<double> of_peak() const {
    return seconds && predicted && *seconds > 0 ? std::optional(*predicted / *seconds) : std::nullopt;
  }
};

struct Explanation {
  std::string device;
  std::vector<Type> inputs;
  ProgramStats stats;
  int threads = 1;                    // that the steps use, at most
  size_t replicas = 1;                // devices that one run starts; all figures are those of one of them
  std::vector<ArrangedGroup> groups;  // members of one structure, for ensembles
  std::vector<PassReport> passes;
  std::vector<ExplainedStep> steps;  // those of a loop's body behind the loop, one deeper
  MemoryReport memory;
  // Steps that are in no loop, added up. A loop's own figures are those of its body.
  int64_t flops = 0, bytes = 0;
  std::optional<double> sum, whole;  // seconds: of these steps, and of a run that measures nothing on the way; medians
  int64_t runs = 0;                  // measured
  std::vector<Speed> speeds;         // of the device: with one thread, and with all that the program uses; published, if it is not here
  int64_t fusions = 0, library_calls = 0;  // among the kernels, where a compiler tells
  std::optional<double> projected;         // seconds that the published roofs allow, for a device that is not here
};

// Compiles and runs the model on made-up data: normal random floats, zeros for everything else. Takes about a second, or one run where
// that takes longer.
Explanation explain(const keras::AnyModel& model, const CompileOptions& options = {});

// The same for a graph.
Explanation explain(const Graph& graph, const std::shared_ptr<Device>& device, CompileSettings settings = {}, int64_t batch = 1);

// What explain() runs for models that leave extents open: every open one is `extent`.
std::vector<Shape> shapes_with(const keras::AnyModel& model, int64_t batch, int64_t extent);

}  // namespace tutti
