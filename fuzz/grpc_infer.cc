// Messages of ModelInfer, compressed or not: any bytes are a call, or refused with an Error.
#include <cstddef>
#include <cstdint>

#if __has_include("inference.pb.h")
#include "tutti/serve/grpc/messages.h"
#endif

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
#if __has_include("inference.pb.h")
  using namespace tutti;
  inference::ModelInferRequest message;
  const grpc::Slice slice(data, size);
  try {
    serve::MemoryClaim claim;
    serve::parse_message(grpc::ByteBuffer(&slice, 1), 1 << 20, claim, message);
    serve::call_of(message, {});
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {
  }
#endif
  return 0;
}
