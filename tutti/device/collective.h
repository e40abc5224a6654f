// What replicas of a program say to each other while they run: all_reduce nodes meet here. Who implements it is run/communicator.h.
#pragma once

#include <span>

#include "tutti/graph/graph.h"

namespace tutti {

class Collective {
 public:
  virtual ~Collective() = default;

  struct Part {
    const std::byte* from;
    std::byte* to;  // may be the same
    int64_t elements;
  };
  // Every `to` becomes the sum of the replicas' `from`, in the order of the replicas. All of them call it, with the same lengths and in the
  // same order; it returns when the sums are there. Throws DeviceError when another one has failed.
  virtual void sum(DType dtype, std::span<const Part> parts) = 0;
};

}  // namespace tutti
