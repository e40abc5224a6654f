// .npy: any bytes are read whole, by rows, and as a model's input, or refused with an Error.
#include <cstdint>

#include "tutti/base/error.h"
#include "tutti/data/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti;
  auto bytes = std::as_bytes(std::span(data, size));
  try {
    NpyReader reader(memory_source({bytes.begin(), bytes.end()}), "fuzz.npy");
    Tensor all = reader.all();
    all.converted(DType::i8).converted(DType::boolean);
    if (all.shape().rank() == 0 || all.shape()[0] == 0) return 0;
    // What is read row by row is what is read at once.
    int64_t rows = all.shape()[0], row_bytes = all.type().bytes() / rows;
    Tensor last = reader.rows(rows - 1, 1);
    if (!std::equal(last.bytes().begin(), last.bytes().end(), all.bytes().begin() + (rows - 1) * row_bytes)) __builtin_trap();
  } catch (const Error&) {
  }
  return 0;
}
