// A serialized model: any JSON becomes a model or is refused with an Error; one that has no problems lowers, and what it lowers to is
// sound.
#include <cstdint>
#include <string_view>

#include "tutti/base/error.h"
#include "tutti/keras/model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    bool legacy = !text.empty() && text[0] == ' ';
    keras::Model model = keras::from_config(Json::parse(text), legacy ? "2.15.0" : "3.15.1");
    if (model.problems().empty() && !model.inputs().empty()) verify(model.lower({.batch = 2}));
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {
  }
  return 0;
}
