// .csv: any bytes are numbers, row by row, or refused with an Error; and the size of the blocks makes no difference.
#include <cstdint>
#include <string>

#include "tutti/base/error.h"
#include "tutti/data/csv.h"

namespace {

using namespace tutti;

// Everything read in blocks of `count` rows, or the refusal.
std::string read(std::span<const std::byte> bytes, CsvHeader header, DType dtype, int64_t count) {
  std::string out;
  try {
    CsvReader reader(memory_source({bytes.begin(), bytes.end()}), "fuzz.csv", header);
    for (;;) {
      Tensor rows = reader.next(count, dtype);
      if (rows.shape()[0] == 0) return out;
      auto block = rows.bytes();
      out.append(reinterpret_cast<const char*>(block.data()), block.size());
    }
  } catch (const Error& e) {
    return e.what();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  auto header = static_cast<CsvHeader>(data[0] % 3);
  DType dtype = all_dtypes[data[1] % std::size(all_dtypes)];
  auto bytes = std::as_bytes(std::span(data + 2, size - 2));
  if (read(bytes, header, dtype, 1) != read(bytes, header, dtype, 64)) __builtin_trap();
  return 0;
}
