// Work on several threads of the one OpenMP team.
#pragma once

#include <omp.h>

#include <cstdint>

namespace tutti::cpu {

// body(member, members) for each member; with one thread it is an ordinary call.
template <class Body>
void team(int threads, const Body& body) {
  if (threads <= 1) return body(int64_t{0}, int64_t{1});
#pragma omp parallel num_threads(threads)
  body(static_cast<int64_t>(omp_get_thread_num()), static_cast<int64_t>(omp_get_num_threads()));
}

}  // namespace tutti::cpu
