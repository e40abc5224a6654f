// The programs of the suite for an H100, which need not be here, and the kernels that a run of each may take: tests/run/h100/GROUP.txt.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tutti {

// The families of the Keras cases ("core", ...); "ensembles", four models of a case side by side, of those families that are put into
// ensembles, and of them the first case with each set of layers; and of the training cases "steps", "stacked_steps", 32 models in one
// program, and "replicated_steps", two devices.
std::vector<std::string> h100_groups();
// The programs of a group, sorted: "dense_relu", of ensembles "core/dense_relu".
std::vector<std::string> h100_programs(const std::string& group);
// Compiles one. Nothing for what is refused by design.
std::optional<int64_t> h100_kernels(const std::string& group, const std::string& program);

std::map<std::string, int64_t> recorded_h100_kernels(const std::string& group);
void record_h100_kernels(const std::string& group, const std::map<std::string, int64_t>& kernels);

}  // namespace tutti
