#include "tutti/serve/protocol/compression.h"

#include <zlib.h>

#include <algorithm>
#include <memory>

#include "tutti/serve/failure.h"

namespace tutti::serve {

std::string decompressed(std::string_view body, std::string_view encoding, size_t most_bytes, MemoryClaim& claim) {
  const auto is = [&](std::string_view name) {
    return std::ranges::equal(encoding, name, [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; });
  };
  const bool gzip = is("gzip") || is("x-gzip");
  if (!gzip && !is("deflate"))
    refuse(FailureKind::bad_request, "Content-Encoding is gzip, deflate or identity; got '{}'", escape(encoding, 40));
  // Some clients send raw deflate under that name; zlib's first byte has the method 8 in its low bits and the pair divides by 31.
  const bool zlib = !gzip && body.size() >= 2 && (body[0] & 0x0f) == 8 &&
                    (static_cast<unsigned char>(body[0]) * 256 + static_cast<unsigned char>(body[1])) % 31 == 0;
  z_stream stream = {};
  if (inflateInit2(&stream, gzip ? 15 + 16 : zlib ? 15 : -15) != Z_OK) fail<OutOfMemory>("serve", "no memory to decompress a body");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> ended(&stream, inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(body.data()));
  stream.avail_in = static_cast<uInt>(std::min<size_t>(body.size(), 1u << 31));
  std::string out;
  int state = Z_OK;
  while (state == Z_OK) {
    if (out.size() == most_bytes) {
      // Full: the stream must end here.
      char more = 0;
      stream.next_out = reinterpret_cast<Bytef*>(&more);
      stream.avail_out = 1;
      state = inflate(&stream, Z_NO_FLUSH);
      if (stream.avail_out == 0) refuse(FailureKind::bad_request, "the body is larger than {} bytes when decompressed", most_bytes);
      continue;
    }
    const size_t before = out.size();
    const size_t room = std::min(most_bytes, std::max<size_t>(before * 2, std::max<size_t>(body.size(), 4096)));
    claim.grow(body.size() + room);
    out.resize(room);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream.avail_out = static_cast<uInt>(std::min<size_t>(out.size() - before, 1u << 31));
    const uInt offered = stream.avail_out;
    state = inflate(&stream, Z_NO_FLUSH);
    out.resize(before + (offered - stream.avail_out));
  }
  if (state != Z_STREAM_END || stream.avail_in > 0)
    refuse(FailureKind::bad_request, "the body is no valid {} stream: {}", encoding,
           state == Z_STREAM_END  ? "other bytes follow it"
           : state == Z_BUF_ERROR ? "it is cut short"
                                  : "it is corrupt");
  return out;
}

}  // namespace tutti::serve
