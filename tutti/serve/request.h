// A request to compute a model, and its answer.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tutti/base/tensor.h"
#include "tutti/serve/failure.h"
#include "tutti/serve/models.h"

namespace tutti::serve {

using Clock = std::chrono::steady_clock;

struct Answer {
  Failure failure;              // then there are no outputs
  std::vector<Tensor> outputs;  // in the model's order, [count, row...]; of memory that is its own, or that place() gave
  int64_t queue_ns = 0, compute_ns = 0;
};

struct Request {
  std::shared_ptr<ModelVersion> model;  // from Models::find(): the request ends on the version that it began on
  std::vector<Tensor> inputs;           // in the model's order, [count, row...], of exactly its dtypes. May be borrowed memory: see Tensor
  uint64_t client = 0;                  // of new_client(): whose order is kept; 0: of nobody, no order
  int priority = 0;                     // higher first; -100 to 100, what is beyond counts as these
  std::optional<Clock::time_point> deadline = {};
  bool inputs_change = false;  // somebody else may write them meanwhile, as the process of a client whose memory they are
  // Called exactly once: on the owner's thread, the timer's, or the one that calls submit() or cancel(), perhaps before they return; so
  // it takes no lock that is held there, does not wait, and does not throw.
  std::function<void(Answer&&)> done;
  // Where outputs of these types are to be written, if not into tensors of their own. Called on the owner's thread; may throw a
  // RequestError, which is then the answer.
  std::function<std::vector<Tensor>(const std::vector<Type>&)> place = {};
};

// To cancel by; may outlive the request.
class PendingRequest;
using Ticket = std::weak_ptr<PendingRequest>;

}  // namespace tutti::serve
