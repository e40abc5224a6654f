#include "tutti/serve/protocol/datatype.h"

#include "tutti/serve/failure.h"

namespace tutti::serve {

std::string_view v2_name(DType dtype) {
  switch (dtype) {
    case DType::boolean: return "BOOL";
    case DType::i8: return "INT8";
    case DType::i16: return "INT16";
    case DType::i32: return "INT32";
    case DType::i64: return "INT64";
    case DType::u8: return "UINT8";
    case DType::u16: return "UINT16";
    case DType::u32: return "UINT32";
    case DType::u64: return "UINT64";
    case DType::f16: return "FP16";
    case DType::bf16: return "BF16";
    case DType::f32: return "FP32";
    case DType::f64: break;
  }
  return "FP64";
}

DType dtype_from_v2(std::string_view name, std::string_view what) {
  for (DType dtype : all_dtypes)
    if (v2_name(dtype) == name) return dtype;
  if (name == "BYTES")
    refuse(
        FailureKind::bad_request,
        "{} has datatype BYTES; models here take numbers, none takes strings; hint: send what the strings are turned into before the model",
        what);
  std::string known;
  for (DType dtype : all_dtypes) known += fmt::format("{}{}", known.empty() ? "" : ", ", v2_name(dtype));
  refuse(FailureKind::bad_request, "{} has the unknown datatype '{}'; known are {}", what, escape(name, 40), known);
}

std::string_view tensorflow_name(DType dtype) {
  switch (dtype) {
    case DType::boolean: return "DT_BOOL";
    case DType::i8: return "DT_INT8";
    case DType::i16: return "DT_INT16";
    case DType::i32: return "DT_INT32";
    case DType::i64: return "DT_INT64";
    case DType::u8: return "DT_UINT8";
    case DType::u16: return "DT_UINT16";
    case DType::u32: return "DT_UINT32";
    case DType::u64: return "DT_UINT64";
    case DType::f16: return "DT_HALF";
    case DType::bf16: return "DT_BFLOAT16";
    case DType::f32: return "DT_FLOAT";
    case DType::f64: break;
  }
  return "DT_DOUBLE";
}

}  // namespace tutti::serve
