// How fast a device is, measured: what `tutti devices --measure` shows and `tutti explain` holds times against.
#pragma once

#include <cstdint>
#include <vector>

namespace tutti {

// The roofs of a device: no kernel is faster. Measured, so a busy machine is a slow one.
struct Speed {
  struct Bandwidth {
    int64_t bytes;            // read again and again
    double bytes_per_second;  // while they are
  };
  int threads = 1;
  double flops_per_second = 0;       // multiply-adds of f32, two each
  std::vector<Bandwidth> bandwidth;  // by size, at least one; the last is memory's
  // Reading what was last read so many bytes ago; between the sizes measured by their logarithms.
  double bytes_per_second(int64_t bytes) const;
};

}  // namespace tutti
