// An inference request as the network's protocols state it, by names, and how it becomes a Request of the scheduler.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tutti/serve/scheduler.h"

namespace tutti::serve {

// What a request from the network may ask for, before anything is allocated for it.
struct CallLimits {
  size_t tensors = 256;     // inputs, and outputs that are asked for
  size_t name_bytes = 256;  // of a tensor, an id
  int json_depth = 40;      // 16 axes inside of a few objects
  uint64_t json_values = 4'000'000;
};

struct WantedOutput {
  std::string name;
  bool binary = false;
};

struct Call {
  std::string id;
  struct Input {
    std::string name;
    Tensor tensor;
  };
  std::vector<Input> inputs;
  std::vector<WantedOutput> outputs;  // empty: all
  bool binary_outputs = false;        // of those that are not named
  int priority = 0;                   // the scheduler's
  std::optional<std::chrono::microseconds> timeout = {};
};

// Bytes as a tensor, a copy: aligned, and of bools only 0 and 1. Throws a bad_request when there are not exactly as many as the type has.
Tensor tensor_from_bytes(std::string_view bytes, DType dtype, const Ints& shape, std::string_view what);

// Triton's priorities: 0 is the default, 1 the highest, larger numbers lower. Ours are higher first, 0 in the middle.
int priority_from_v2(int64_t priority);
// A time limit in microseconds; 0: none. Throws a bad_request when negative.
std::optional<std::chrono::microseconds> timeout_from_v2(int64_t microseconds);
void check_tensor_name(std::string_view name, std::string_view what, const CallLimits& limits);

// "" is the newest; throws a not_found for what is no number.
int64_t version_from(std::string_view text);

// The model's inputs in its order, from those given by name; throws a bad_request that names what is missing, given twice or unknown.
std::vector<Tensor> inputs_in_order(Call& call, const ModelVersion& model);
// Indices of the outputs that are asked for, in the order of asking.
std::vector<size_t> wanted_outputs(const Call& call, const ModelVersion& model);

// Everything but client and done.
Request request_of(Call& call, std::shared_ptr<ModelVersion> model);

}  // namespace tutti::serve
