// How often this test program has called operator new.
#pragma once
#include <cstdint>

namespace tutti {

int64_t count_allocations();

}  // namespace tutti
