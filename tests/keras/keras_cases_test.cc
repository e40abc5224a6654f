// Compares Tutti with Keras: one test per case that make_cases.py wrote, file format and device; and each case's model stacked with another
// of other weights, with the two side by side.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/device/run_graph.h"
#include "tests/keras/case_files.h"
#include "tests/keras/closeness.h"
#include "tutti/transform/append.h"
#include "tutti/transform/stack.h"
#include "tutti/tutti.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

struct KerasCase {
  fs::path folder;
  std::string format, device;
};

Tensor first_sample(const Tensor& batch) {
  Ints extents = batch.shape().extents();
  extents.at(0) = 1;
  Tensor sample(batch.dtype(), extents);
  std::copy_n(batch.bytes().begin(), sample.bytes().size(), sample.bytes().begin());
  return sample;
}

std::vector<Tensor> run(const Model& model, const std::string& device, std::vector<Tensor> inputs) {
  CompileOptions options{.batch = inputs.at(0).shape()[0], .device = device};
  for (const Tensor& input : inputs) options.input_shapes.push_back(input.shape());
  CompiledModel compiled = compile(model, options);
  std::vector<Tensor> outputs;
  std::vector<std::span<const std::byte>> in;
  std::vector<std::span<std::byte>> out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    inputs[i] = inputs[i].converted(compiled.input_types().at(i).dtype);
    in.push_back(std::as_const(inputs[i]).bytes());
  }
  for (const Type& type : compiled.output_types()) out.push_back(outputs.emplace_back(type).bytes());
  compiled(in, out);
  return outputs;
}

class KerasCaseTest : public testing::Test {
 public:
  explicit KerasCaseTest(KerasCase test) : case_(std::move(test)) {}

  void TestBody() override {
    try {
      open_device(case_.device);
    } catch (const DeviceError& e) {
      GTEST_SKIP() << e.what();
    }
    const Json facts = read_json(case_.folder / "case.json");
    if (const Json* error = facts.find("error")) FAIL() << "Keras failed to make this case:\n" << error->as_string();
    std::string file = case_.folder / ("model." + case_.format);
    if (const Json* refused = facts.find("refused")) {
      expect_refusal(file, refused->as_string());
    } else {
      expect_agreement(file, facts);
    }
  }

 private:
  void expect_refusal(const std::string& file, const std::string& words) const {
    try {
      compile(load(file), {.device = case_.device});
      ADD_FAILURE() << "expected an error with the words '" << words << "'; the file was read";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos)
          << "expected an error with the words '" << words << "'; got: " << error.what();
    }
  }

  void expect_agreement(const std::string& file, const Json& facts) const {
    NpzReader data(case_.folder / "data.npz");
    std::vector<Tensor> inputs = numbered_arrays(data, "in_"), expected = numbered_arrays(data, "out_");
    ASSERT_FALSE(inputs.empty() || expected.empty());
    Model model = load(file);
    std::vector<std::string> names;
    for (const Json& name : facts.at("output_names").items()) names.push_back(name.as_string());
    if (std::set(names.begin(), names.end()).size() == names.size()) {
      EXPECT_EQ(model.output_names(), names);
    }
    ASSERT_EQ(model.output_names().size(), names.size());  // a name that Keras 3 gives once is that output's, whatever repeated ones become
    for (size_t i = 0; i < names.size() && facts.at("oracle").as_string() != "tf_keras"; ++i)
      if (std::count(names.begin(), names.end(), names[i]) == 1) {
        EXPECT_EQ(model.output_names()[i], names[i]);
      }
    expect_close(run(model, case_.device, inputs), expected, facts, "the whole batch");
    if (!facts.at("single").as_bool()) return;
    std::transform(inputs.begin(), inputs.end(), inputs.begin(), first_sample);
    std::transform(expected.begin(), expected.end(), expected.begin(), first_sample);
    expect_close(model.predict(inputs, 1, case_.device), expected, facts, "the first sample alone");
  }

  static void expect_close(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected, const Json& facts, const char* what) {
    ASSERT_EQ(actual.size(), expected.size()) << "outputs, " << what;
    Tolerance tolerance{facts.at("atol").as_number(), facts.at("rtol").as_number()};
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(numpy_name(actual[i].dtype()), facts.at("output_dtypes")[i].as_string()) << "output " << i << ", " << what;
      EXPECT_EQ(worst_difference(actual[i], expected[i], tolerance), "") << "output " << i << ", " << what;
    }
  }

  KerasCase case_;
};

class StackedCaseTest : public testing::Test {
 public:
  explicit StackedCaseTest(fs::path folder) : folder_(std::move(folder)) {}

  void TestBody() override {
    const std::string file = folder_ / "model.keras";
    const keras::Model one = keras::load(file), other = with_other_weights(file);
    if (!one.problems().empty()) return;  // refused by design: that is tested above
    const NpzReader data(folder_ / "data.npz");
    std::vector<Tensor> inputs = numbered_arrays(data, "in_");
    keras::LowerOptions options{inputs.at(0).shape()[0]};
    for (const Tensor& input : inputs) options.input_shapes.push_back(input.shape());
    Graph both;
    std::vector<Value> values;
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs[i] = inputs[i].converted(one.inputs()[i].dtype);
      values.push_back(both.input(one.inputs()[i].name, inputs[i].type()));
    }
    std::vector<Region> regions;
    for (const keras::Model* model : {&one, &other}) {
      const size_t first = both.nodes().size();
      for (Value output : append(both, model->lower(options), values)) both.output("y" + std::to_string(both.outputs().size()), output);
      regions.push_back({first, both.nodes().size()});
    }
    const auto groups = group_alike(both, regions);
    if (groups.empty()) return;  // nothing is computed
    const auto expected = Runner(both, "reference")(inputs);
    for (Together how : {Together::stacked, Together::looped}) {
      const RegionGroup chosen[] = {{regions, how}};
      const Graph together = stack(both, chosen);
      verify(together);
      const auto got = Runner(together, "reference")(inputs);
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(worst_difference(got[i], expected[i], {1e-6, 1e-5}), "")
            << "output " << i << (how == Together::stacked ? ", stacked" : ", looped");
    }
  }

 private:
  fs::path folder_;
};

std::vector<fs::path> folders_in(const fs::path& parent) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(parent)) {
    if (entry.is_directory() && entry.path().filename().string()[0] != '.') found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// "keras_cases.core/dense_relu.keras@reference"; a case that Keras failed on has no files, and one test that says so.
void register_cases(const fs::path& root, const std::string& device) {
  for (const fs::path& family : folders_in(root)) {
    size_t count = 0;
    for (const fs::path& folder : folders_in(family)) {
      std::vector<std::string> formats;
      for (const char* format : {"keras", "h5"}) {
        if (fs::exists(folder / (std::string("model.") + format))) formats.emplace_back(format);
      }
      if (device == "stacked") {
        if (!fs::exists(folder / "model.keras") || !fs::exists(folder / "data.npz")) continue;
        const std::string name = family.filename().string() + "/" + folder.filename().string() + "@" + device;
        testing::RegisterTest("keras_cases", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                              [=]() -> testing::Test* { return new StackedCaseTest(folder); });
        continue;
      }
      if (formats.empty()) formats.emplace_back("error");
      if (device == "xla_some" && count++ % 5 != 0) continue;
      for (const std::string& format : formats) {
        std::string name = family.filename().string() + "/" + folder.filename().string() + "." + format + "@" + device;
        testing::RegisterTest("keras_cases", name.c_str(), nullptr, nullptr, __FILE__, __LINE__, [=]() -> testing::Test* {
          return new KerasCaseTest({folder, format, device.starts_with("xla") ? "xla:cpu" : device});
        });
      }
    }
  }
}

}  // namespace
}  // namespace tutti

int main(int count, char** words) {
  testing::InitGoogleTest(&count, words);
  std::string root = std::string(TUTTI_TEST_DATA) + "/keras_cases";
  if (!std::filesystem::is_directory(root)) {
    std::fprintf(stderr, "keras_cases: there is no %s; ./x test makes it\n", root.c_str());
    return 1;
  }
  for (const char* device : {"reference", "cpu", "stacked", "xla", "xla_some"}) tutti::register_cases(root, device);
  int result = RUN_ALL_TESTS();
  if (testing::UnitTest::GetInstance()->test_to_run_count() > 0) return result;
  std::fprintf(stderr, "keras_cases: no case matches the filter; ./x test makes them in %s\n", root.c_str());
  return 1;
}
