// Messages of ModelInfer: any bytes are none, or a call, or refused with an Error.
#include <cstdint>

#if __has_include("inference.pb.h")
#include "tutti/serve/grpc/messages.h"
#endif

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
#if __has_include("inference.pb.h")
  using namespace tutti;
  inference::ModelInferRequest message;
  if (!message.ParseFromArray(data, static_cast<int>(size))) return 0;
  try {
    serve::call_of(message, {});
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {
  }
#endif
  return 0;
}
