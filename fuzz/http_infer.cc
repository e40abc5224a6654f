// Requests of the Open Inference Protocol and of TF Serving over REST: any bytes are a call, or refused with an Error, and small requests
// take little memory. The first byte says what the rest is.
#include <cstdint>
#include <string_view>

#include "tutti/base/error.h"
#include "tutti/serve/http/route.h"
#include "tutti/serve/protocol/compression.h"
#include "tutti/serve/protocol/tensor_json.h"
#include "tutti/serve/protocol/tf_json.h"
#include "tutti/serve/protocol/v2_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti;
  using namespace tutti::serve;
  if (size < 2) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  static const std::vector<TensorInfo> inputs = {{"a", DType::f32, {-1, 2}}, {"b", DType::i8, {-1}}, {"c", DType::boolean, {-1, -1}}};
  try {
    switch (data[0] % 5) {
      case 0: {
        // The second byte splits JSON and tensors, as Inference-Header-Content-Length does.
        const Call call = parse_v2(rest, rest.size() - std::min<size_t>(data[1], rest.size()), {});
        for (const Call::Input& input : call.inputs) {
          std::string text;
          append_nested(text, input.tensor);
          append_flat(text, input.tensor);
        }
        break;
      }
      case 1: parse_tf(rest, inputs, {}); break;
      case 2: parse_tf(rest, {inputs[data[1] % inputs.size()]}, {}); break;
      case 3:
        if (MemoryClaim claim; decompressed(rest, data[1] % 2 ? "gzip" : "deflate", 1 << 16, claim).size() > 1 << 16) __builtin_trap();
        break;
      case 4:
        if (route_of(rest).model.size() > 256) __builtin_trap();
        break;
    }
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {
  }
  return 0;
}
