#include "tutti/base/inflate.h"

#include <zlib.h>

#include <algorithm>

#include "tutti/base/error.h"

namespace tutti {

namespace {
constexpr size_t max_step = size_t{1} << 30;  // zlib counts in 32 bits

struct Stream {
  explicit Stream(Packing packing) {
    if (inflateInit2(&z, packing == Packing::raw ? -MAX_WBITS : MAX_WBITS) != Z_OK) fail<OutOfMemory>("inflate", "zlib cannot start");
  }
  ~Stream() { inflateEnd(&z); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  z_stream z{};
};
}  // namespace

bool inflate_exactly(Packing packing, const std::function<std::span<const std::byte>()>& next, std::span<std::byte> out) {
  Stream stream(packing);
  z_stream& z = stream.z;
  std::span<const std::byte> in;
  Bytef beyond = 0;  // where a stream that is too long gives itself away
  int status = Z_OK;
  while (status == Z_OK) {
    if (in.empty()) in = next();
    bool full = out.empty();
    z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
    z.avail_in = static_cast<uInt>(std::min(in.size(), max_step));
    z.next_out = full ? &beyond : reinterpret_cast<Bytef*>(out.data());
    z.avail_out = full ? 1 : static_cast<uInt>(std::min(out.size(), max_step));
    uInt given = z.avail_in, room = z.avail_out;
    status = ::inflate(&z, Z_NO_FLUSH);
    in = in.subspan(given - z.avail_in);
    if (full && z.avail_out == 0) return false;
    if (!full) out = out.subspan(room - z.avail_out);
  }
  return status == Z_STREAM_END && out.empty() && in.empty() && next().empty();
}

}  // namespace tutti
