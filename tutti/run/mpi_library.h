// What the communication thread asks of MPI. It lives in a library of its own, which is loaded where a launcher has started this process:
// nothing else needs MPI to be there.
#pragma once

#include <atomic>
#include <cstdint>

namespace tutti {

// Every call is made by one thread, the same one. Those that wait give 0, or the rank + 1 that did not answer within the deadline.
struct MpiLibrary {
  int rank = 0, size = 1;
  int (*host)(int rank, char* name, int longest) = nullptr;  // gives its length
  // Sums of floats in the order of the ranks, the same bits in all of them; `scratch` has room for count + size floats.
  int (*sum)(float* values, float* scratch, int64_t count) = nullptr;
  int (*gather)(const double* own, int count, double* all) = nullptr;
  int (*roll)(bool hurries) = nullptr;  // asks all ranks whether they are there
  void (*answer)() = nullptr;           // to those who ask whether this rank is still there; often, while nothing else is done
  // Once that is set, who waits asks at once who is still there: a launcher that has lost a rank stops the others, and soon kills them.
  void (*heed)(const std::atomic<bool>* stop) = nullptr;
  // A word to all other ranks, who hear it within `answer` and whatever waits: told here, by this thread.
  void (*tell)(const char* word, int64_t bytes) = nullptr;
  void (*hear)(void (*heard)(void* listener, const char* word, int64_t bytes), void* listener) = nullptr;
  void (*abort)(int exit_code) = nullptr;
  void (*finish)() = nullptr;
};

// Exported by the library. 0, or what MPI says.
using JoinMpi = int(double deadline, MpiLibrary* library);
inline constexpr const char* join_mpi_name = "tutti_join_mpi";
inline constexpr const char* mpi_library_file = "libtutti_mpi.so";

}  // namespace tutti
