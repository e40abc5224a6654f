// What the network's protocols parse and write, without a network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tutti/serve/http/api.h"
#include "tutti/serve/http/route.h"
#include "tutti/serve/protocol/address.h"
#include "tutti/serve/protocol/compression.h"
#include "tutti/serve/protocol/memory_budget.h"
#include "tutti/serve/protocol/tensor_json.h"
#include "tutti/serve/protocol/tf_json.h"
#include "tutti/serve/protocol/v2_json.h"

namespace tutti::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

Call parsed(std::string_view json, std::string_view tail = "") { return parse_v2(std::string(json) + std::string(tail), json.size(), {}); }

std::string one_input(std::string_view members) { return fmt::format(R"({{"inputs": [{{"name": "x", {}}}]}})", members); }

TEST(protocol, paths_have_their_endpoints) {
  const auto is = [](std::string_view target, Endpoint endpoint, std::string_view model = "", std::string_view version = "") {
    const Route route = route_of(target);
    EXPECT_EQ(static_cast<int>(route.endpoint), static_cast<int>(endpoint)) << target;
    EXPECT_EQ(route.model, model) << target;
    EXPECT_EQ(route.version, version) << target;
  };
  is("/", Endpoint::page);
  is("/?x=1", Endpoint::page);
  is("/metrics", Endpoint::metrics);
  is("/v2", Endpoint::server);
  is("/v2/", Endpoint::server);
  is("http://host:8000/v2", Endpoint::server);
  is("http://host", Endpoint::page);
  is("/v2/health/live", Endpoint::live);
  is("/v2/models/stats", Endpoint::statistics);
  is("/v2/models/a/stats", Endpoint::statistics, "a");
  is("/v2/models/a", Endpoint::metadata, "a");
  is("/v2/models/a%2fb/infer?q", Endpoint::infer, "a/b");
  is("/v2/models/a/versions/3/infer", Endpoint::infer, "a", "3");
  is("/v2/models/a/versions/3", Endpoint::metadata, "a", "3");
  is("/v2/repository/models/a/unload", Endpoint::unload, "a");
  is("/v1/models/a:predict", Endpoint::tf_predict, "a");
  is("/v1/models/a/versions/3:predict", Endpoint::tf_predict, "a", "3");
  is("/v1/models/a:regress", Endpoint::tf_other, "a");
  is("/v1/models/a/versions/3/metadata", Endpoint::tf_metadata, "a", "3");
  is("/v1/models/a", Endpoint::tf_status, "a");
  for (const char* none :
       {"", "v2", "*", "/v2//", "/v3", "/v2/models", "/v2/models/", "/v2/models/a/infer/b", "/v2/models/a/versions", "/v1/models/:predict",
        "/v2/models/a%2/infer", "/v2/models/%zz", "/v1/models", "/a/b/c/d/e/f/g/h/i/j/k", "ftp://x/v2", "x/v2"})
    is(none, Endpoint::none);
  is("/v2/models/" + std::string(300, 'a'), Endpoint::none);
}

TEST(protocol, v2_data_may_be_nested_or_flat) {
  for (const char* data : {"[1, 2.5, -3, 4]", "[[1, 2.5], [-3, 4]]"}) {
    const Call call = parsed(one_input(fmt::format(R"("shape": [2, 2], "datatype": "FP32", "data": {})", data)));
    ASSERT_EQ(call.inputs.size(), 1u);
    EXPECT_EQ(call.inputs[0].tensor.shape(), Shape({2, 2}));
    EXPECT_THAT(call.inputs[0].tensor.as<float>(), ElementsAre(1, 2.5, -3, 4));
  }
}

TEST(protocol, v2_elements_of_every_type_survive_json) {
  for (DType dtype : all_dtypes) {
    Tensor tensor(dtype, {3});
    dispatch(dtype, [&](auto zero) {
      using T = decltype(zero);
      tensor.as<T>()[0] = convert_element<T>(1.0f);
      tensor.as<T>()[1] = convert_element<T>(is_signed(dtype) ? -2.0f : 2.0f);
      tensor.as<T>()[2] = convert_element<T>(0.0f);
    });
    std::string text;
    append_flat(text, tensor);
    const Tensor back = tensor_from_json(Json::parse(text), dtype, {3}, "x");
    EXPECT_TRUE(std::equal(tensor.bytes().begin(), tensor.bytes().end(), back.bytes().begin())) << name(dtype) << text;
  }
}

TEST(protocol, whole_numbers_of_64_bits_survive_json) {
  const uint64_t large[] = {0, (uint64_t{1} << 53) + 1, uint64_t{1} << 63, ~uint64_t{0}};
  std::string text;
  append_flat(text, Tensor::of<uint64_t>({4}, large));
  EXPECT_EQ(text, "[0,9007199254740993,9223372036854775808,18446744073709551615]");
  EXPECT_THAT(tensor_from_json(Json::parse(text), DType::u64, {4}, "x").as<uint64_t>(), testing::ElementsAreArray(large));
  EXPECT_THAT(tensor_from_json(Json::parse("[9223372036854775808]"), DType::f64, {1}, "x").as<double>(), ElementsAre(0x1p63));
  for (const char* beyond : {"[18446744073709551616]", "[-1]", "[1e19]", "[0.5]"})
    EXPECT_THROW(tensor_from_json(Json::parse(beyond), DType::u64, {1}, "x"), RequestError) << beyond;
  EXPECT_THROW(tensor_from_json(Json::parse("[9223372036854775808]"), DType::i64, {1}, "x"), RequestError);
}

TEST(protocol, floats_are_written_shortest_and_read_back_the_same) {
  const float values[] = {0.1f, 1.0f, 1e-30f, 3.4e38f, -0.0f, std::numeric_limits<float>::denorm_min()};
  std::string text;
  append_flat(text, Tensor::of<float>({6}, values));
  EXPECT_EQ(text, "[0.1,1.0,1e-30,3.4e+38,-0.0,1e-45]");
  const Tensor back = tensor_from_json(Json::parse(text), DType::f32, {6}, "x");
  EXPECT_TRUE(std::equal(back.as<float>().begin(), back.as<float>().end(), values));
  text.clear();
  const double odd[] = {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()};
  append_nested(text, Tensor::of<double>({2, 1}, odd));
  EXPECT_EQ(text, "[[NaN],[-Infinity]]");
}

TEST(protocol, v2_binary_tensors_follow_the_json) {
  const float x[] = {1, 2};
  const int64_t y[] = {7};
  std::string tail(reinterpret_cast<const char*>(x), sizeof x);
  tail.append(reinterpret_cast<const char*>(y), sizeof y);
  const Call call = parsed(R"({"id": "i", "parameters": {"binary_data_output": true, "priority": 1, "timeout": "5000"}, "inputs": [
    {"name": "x", "shape": [2], "datatype": "FP32", "parameters": {"binary_data_size": 8}},
    {"name": "z", "shape": [1], "datatype": "BOOL", "data": [true]},
    {"name": "y", "shape": [1, 1], "datatype": "INT64", "parameters": {"binary_data_size": 8}}],
    "outputs": [{"name": "o"}, {"name": "p", "parameters": {"binary_data": false}}]})",
                           tail);
  EXPECT_EQ(call.id, "i");
  EXPECT_EQ(call.priority, 100);
  EXPECT_EQ(call.timeout, std::chrono::microseconds(5000));
  EXPECT_THAT(call.inputs.at(0).tensor.as<float>(), ElementsAre(1, 2));
  EXPECT_THAT(call.inputs.at(1).tensor.as<bool>(), ElementsAre(true));
  EXPECT_THAT(call.inputs.at(2).tensor.as<int64_t>(), ElementsAre(7));
  EXPECT_TRUE(call.outputs.at(0).binary);
  EXPECT_FALSE(call.outputs.at(1).binary);
}

TEST(protocol, binary_bools_become_zero_and_one) {
  const Tensor tensor = tensor_from_bytes(std::string_view("\0\1\2\377", 4), DType::boolean, {4}, "x");
  EXPECT_THAT(tensor.bytes(), ElementsAre(std::byte(0), std::byte(1), std::byte(1), std::byte(1)));
}

TEST(protocol, v2_refuses_before_it_allocates) {
  const auto refused = [](std::string_view members) { return error_of([&] { parsed(one_input(members)); }); };
  EXPECT_THAT(refused(R"("shape": [1099511627776], "datatype": "FP64", "data": [1])"), HasSubstr("has 1099511627776 elements; got 1"));
  EXPECT_THAT(refused(R"("shape": [1099511627776], "datatype": "FP64", "parameters": {"binary_data_size": 0})"), HasSubstr("bytes; got 0"));
  EXPECT_THAT(refused(R"("shape": [9223372036854775807, 9223372036854775807], "datatype": "FP64", "data": [])"), HasSubstr("2^40"));
  EXPECT_THAT(refused(R"("shape": [0, 9223372036854775807], "datatype": "FP64", "data": [])"), HasSubstr("2^40"));
  EXPECT_THAT(refused(R"("shape": [1.5], "datatype": "FP64", "data": [1])"), HasSubstr("whole numbers; got 1.5"));
  EXPECT_THAT(refused(R"("shape": 3, "datatype": "FP64", "data": [1])"), HasSubstr("must be a list"));
  EXPECT_THAT(refused(R"("shape": [2, 2], "datatype": "FP64", "data": [[1, 2, 3], [4]])"), HasSubstr("list of 3 at axis 1"));
  EXPECT_THAT(refused(R"("shape": [2], "datatype": "FP64", "data": [1, [2]])"), HasSubstr("got list"));
  EXPECT_THAT(refused(R"("shape": [1], "datatype": "UINT8", "data": [256])"), HasSubstr("elements of type u8; got 256"));
  EXPECT_THAT(refused(R"("shape": [1], "datatype": "UINT8", "data": [-1])"), HasSubstr("got -1"));
  EXPECT_THAT(refused(R"("shape": [1], "datatype": "INT64", "data": [9223372036854775808])"), HasSubstr("elements of type i64"));
  EXPECT_THAT(refused(R"("shape": [1], "datatype": "UINT64", "data": [18446744073709551616])"), HasSubstr("sent as bytes"));
  EXPECT_THAT(refused(R"("shape": [1], "datatype": "INT32", "data": [1.5])"), HasSubstr("got 1.5"));
  EXPECT_THAT(refused(R"("shape": [1], "datatype": "BOOL", "data": [2])"), HasSubstr("type bool"));
  EXPECT_EQ(refused(R"("shape": [0, 4], "datatype": "FP32", "data": [])"), "");
}

TEST(protocol, v2_json_has_limits) {
  CallLimits limits;
  limits.json_values = 100;
  std::string data = "[0";
  for (int i = 0; i < 200; ++i) data += ",0";
  const std::string body = one_input(R"("shape": [201], "datatype": "FP32", "data": )" + data + "]");
  EXPECT_THAT(error_of([&] { parse_v2(body, body.size(), limits); }), HasSubstr("more than 100 values"));
  EXPECT_EQ(error_of([&] { parsed(body); }), "");
}

TEST(protocol, triton_priorities_become_ours) {
  EXPECT_EQ(priority_from_v2(0), 0);
  EXPECT_EQ(priority_from_v2(1), 100);
  EXPECT_EQ(priority_from_v2(2), 99);
  EXPECT_EQ(priority_from_v2(101), 0);
  EXPECT_EQ(priority_from_v2(std::numeric_limits<int64_t>::max()), -100);
  EXPECT_THAT(error_of([] { priority_from_v2(-1); }), HasSubstr("0 or more"));
}

TEST(protocol, tf_rows_and_columns_are_the_same_tensors) {
  const std::vector<TensorInfo> inputs = {{"a", DType::f32, {-1, 2}}, {"b", DType::i32, {-1}}};
  for (const char* body : {R"({"instances": [{"a": [1, 2], "b": 5}, {"b": 6, "a": [3, 4]}]})",
                           R"({"signature_name": "serving_default", "inputs": {"b": [5, 6], "a": [[1, 2], [3, 4]]}})"}) {
    TfCall call = parse_tf(body, inputs, {});
    ASSERT_EQ(call.call.inputs.size(), 2u);
    if (call.call.inputs[0].name == "b") std::swap(call.call.inputs[0], call.call.inputs[1]);
    EXPECT_EQ(call.call.inputs[0].tensor.shape(), Shape({2, 2}));
    EXPECT_THAT(call.call.inputs[0].tensor.as<float>(), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(call.call.inputs[1].tensor.as<int32_t>(), ElementsAre(5, 6));
  }
}

TEST(protocol, compressed_bodies_stay_within_their_bound) {
  // gzip of "hello".
  const std::string packed("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\x07\x00\x86\xa6\x10\x36\x05\x00\x00\x00", 25);
  MemoryClaim claim(std::make_shared<MemoryBudget>(1 << 20));
  EXPECT_EQ(decompressed(packed, "gzip", 5, claim), "hello");
  EXPECT_THAT(error_of([&] { decompressed(packed, "gzip", 4, claim); }), HasSubstr("larger than 4 bytes"));
  EXPECT_THAT(error_of([&] { decompressed(packed + "x", "gzip", 100, claim); }), HasSubstr("other bytes follow"));
  EXPECT_THAT(error_of([&] { decompressed(packed.substr(0, 20), "gzip", 100, claim); }), HasSubstr("cut short"));
  EXPECT_THAT(error_of([&] { decompressed("hello", "gzip", 100, claim); }), HasSubstr("corrupt"));
  EXPECT_THAT(error_of([&] { decompressed("", "deflate", 100, claim); }), HasSubstr("cut short"));
}

TEST(protocol, secrets_are_compared_whole) {
  EXPECT_TRUE(same_secret("abc", "abc"));
  for (const char* wrong : {"", "a", "ab", "abd", "abcabc", "abcd"}) EXPECT_FALSE(same_secret(wrong, "abc")) << wrong;
}

TEST(protocol, addresses_are_host_and_port) {
  EXPECT_EQ(host_and_port(":80").host, "");
  EXPECT_EQ(host_and_port("0.0.0.0:80").port, 80);
  EXPECT_EQ(host_and_port("[::1]:80").host, "::1");
  for (const char* wrong : {"", "80", ":", ":x", ":65536", ":-1", "a:b:", ": 1"})
    EXPECT_THAT(error_of([&] { host_and_port(wrong); }), HasSubstr("[HOST]:PORT")) << wrong;
}

TEST(protocol, a_memory_claim_is_given_back) {
  auto budget = std::make_shared<MemoryBudget>(100);
  {
    MemoryClaim claim(budget);
    claim.grow(60);
    claim.grow(40);
    EXPECT_EQ(budget->left(), 40u);
    MemoryClaim moved = std::move(claim);
    MemoryClaim other(budget);
    EXPECT_THAT(error_of([&] { other.grow(41); }), HasSubstr("too many bytes"));
    other.grow(40);
    EXPECT_EQ(budget->left(), 0u);
  }
  EXPECT_EQ(budget->left(), 100u);
}

}  // namespace
}  // namespace tutti::serve
