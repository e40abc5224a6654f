// HDF5: whatever the bytes are, every object and attribute is read, or refused with an Error.
#include <cstdint>

#include "tests/hdf5/walk.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti;
  auto bytes = std::as_bytes(std::span(data, size));
  try {
    walk(keras::Hdf5File(memory_source({bytes.begin(), bytes.end()})));
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {
  }
  return 0;
}
