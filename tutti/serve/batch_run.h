// Computes a batch: the rows of several requests through one program, each request's rows back into its own outputs.
#pragma once

#include <vector>

#include "tutti/serve/request_queue.h"

namespace tutti::serve {

struct Batch {
  std::shared_ptr<ModelVersion> model;
  std::vector<Pending> requests;  // one or more, of the same rows
  int64_t samples = 0;            // to compute: fewer than they have where the first is larger than a batch
};

// Computes it and calls done() of those that are finished, which is all but perhaps the first: Batch::samples of it are then `computed`.
// Requests that fail do so alone. For one thread, the device's owner. Gives the one that is not finished, or nothing.
Pending run(const Batch& batch);

}  // namespace tutti::serve
