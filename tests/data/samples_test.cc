// From a data file to a model's inputs, and from results to a file: formats told apart, shapes and dtypes made to fit or refused.
#include "tutti/data/samples.h"

#include "tests/scratch.h"
#include "tutti/base/error.h"
#include "tutti/data/format.h"
#include "tutti/data/npz.h"
#include "tutti/data/row_writer.h"

namespace tutti {
namespace {

std::vector<Tensor> all_samples(const std::string& path, const std::vector<InputSpec>& inputs) {
  return open_samples(path, inputs)->next(1000);
}

std::string refusal(const std::string& path, const std::vector<InputSpec>& inputs) {
  return message_of<InvalidArgument>([&] { open_samples(path, inputs); });
}

TEST(Samples, ArriveInBatchesInTheirOrderAndInTheModelsDType) {
  auto reader = open_samples(numpy_file("int64.npy"), {{"x", DType::f32, {3, 2}}});
  EXPECT_EQ(reader->samples(), 5);
  EXPECT_EQ(reader->rows()[0].shape, Shape({3, 2}));
  EXPECT_EQ(to_string(reader->next(2)[0].type()), "f32[2, 3, 2]");
  Tensor rest = reader->next(100)[0];
  EXPECT_EQ(to_string(rest.type()), "f32[3, 3, 2]");
  EXPECT_EQ(rest.as<float>()[0], 12.0f);
  EXPECT_EQ(reader->next(100)[0].shape()[0], 0);
}

TEST(Samples, OpenExtentsComeFromTheData) {
  auto reader = open_samples(numpy_file("float32.npy"), {{"x", DType::f32, {-1, 2}}});
  EXPECT_EQ(reader->rows()[0].shape, Shape({3, 2}));
}

TEST(Samples, ALastAxisOfOneMayBeMissingOrTooMuch) {
  EXPECT_EQ(all_samples(numpy_file("vector.npy"), {{"x", DType::f32, {1}}})[0].shape(), Shape({7, 1}));
  Scratch scratch;
  write_npy(scratch.path("x.npy"), Tensor(DType::f32, {4, 3, 1}));
  EXPECT_EQ(all_samples(scratch.path("x.npy"), {{"x", DType::f32, {3}}})[0].shape(), Shape({4, 3}));
  write_npy(scratch.path("y.npy"), Tensor(DType::f32, {4, 3, 2}));
  EXPECT_PRED2(contains, refusal(scratch.path("y.npy"), {{"x", DType::f32, {3}}}), "input 'x' expects float32 (samples, 3); ");
}

TEST(Samples, AWrongShapeNamesTheInputWhatItExpectsAndWhatIsThere) {
  std::string file = numpy_file("float64.npy");
  EXPECT_EQ(refusal(file, {{"image", DType::f32, {28, -1, 1}}}),
            "[input] input 'image' expects float32 (samples, 28, any, 1); '" + file + "' is float64 [5, 3, 2]");
  EXPECT_PRED2(contains, refusal(numpy_file("number.npy"), {{"x", DType::f32, {}}}), "is float64 []");
}

TEST(Samples, SeveralInputsComeByNameOrByOrder) {
  Scratch scratch;
  NpzWriter writer(scratch.path("x.npz"), {{"y", DType::f32, {2}}, {"x", DType::f32, {3}}, {"labels", DType::i64, {}}});
  writer.write(0, Tensor(DType::f32, {4, 2}));
  writer.write(1, Tensor(DType::f32, {4, 3}));
  writer.commit();
  auto named = all_samples(scratch.path("x.npz"), {{"x", DType::f32, {3}}, {"y", DType::f32, {2}}});
  EXPECT_EQ(named[0].shape(), Shape({4, 3}));
  EXPECT_EQ(named[1].shape(), Shape({4, 2}));
  auto ordered = all_samples(numpy_file("by_order.npz"), {{"p", DType::f32, {3}}, {"q", DType::f32, {2}}});
  EXPECT_EQ(ordered[1].shape(), Shape({4, 2}));
}

TEST(Samples, AnArrayThatIsMissingListsThoseThatAreThere) {
  EXPECT_PRED2(contains, refusal(numpy_file("stored.npz"), {{"aa", DType::f32, {3, 2}}, {"b", DType::f32, {}}}),
               "no array 'aa' in '" + numpy_file("stored.npz") + "'; it has 'a', 'b' (did you mean 'a'");
  EXPECT_PRED2(contains, refusal(numpy_file("stored.npz"), {{"a", DType::f32, {3, 2}}, {"c", DType::f32, {}}}), "no array 'c' in ");
  EXPECT_PRED2(contains, refusal(numpy_file("by_order.npz"), {{"p", DType::f32, {3}}, {"q", DType::f32, {2}}, {"r", DType::f32, {2}}}),
               "no array 'arr_2'");
}

TEST(Samples, TheOneArrayOfAnNpzIsTheOneInput) {
  Scratch scratch;
  NpzWriter writer(scratch.path("x.npz"), {{"anything", DType::f32, {2}}});
  writer.commit();
  EXPECT_EQ(all_samples(scratch.path("x.npz"), {{"x", DType::f32, {2}}})[0].shape(), Shape({0, 2}));
}

TEST(Samples, InputsOfUnequalLengthAreRefused) {
  EXPECT_PRED2(contains, refusal(numpy_file("stored.npz"), {{"a", DType::f32, {3, 2}}, {"b", DType::f32, {}}}),
               "equally many samples; 'a' has 5 and 'b' has 4");
}

TEST(Samples, OneArrayIsNotEnoughForTwoInputs) {
  Scratch scratch;
  std::vector<InputSpec> two{{"a", DType::f32, {2}}, {"b", DType::f32, {2}}};
  for (const std::string& file : {numpy_file("float32.npy"), scratch.write("x.csv", "1,2\n")})
    EXPECT_PRED2(contains, refusal(file, two), "the model has 2 inputs ('a', 'b'); '" + file + "' holds one array; hint: an .npz");
}

TEST(Samples, ColumnsAreTheElementsOfAnInputRowMajor) {
  Scratch scratch;
  std::string file = scratch.write("x.csv", "a,b,c,d,e,f\n1,2,3,4,5,6\n7,8,9,10,11,12\n");
  Tensor read = all_samples(file, {{"x", DType::f32, {3, 2}}})[0];
  EXPECT_EQ(read.shape(), Shape({2, 3, 2}));
  EXPECT_EQ(read.as<float>()[7], 8.0f);
  EXPECT_EQ(all_samples(file, {{"x", DType::i32, {-1, 2}}})[0].shape(), Shape({2, 3, 2}));
  EXPECT_EQ(refusal(file, {{"x", DType::f32, {7}}}),
            "[input] input 'x' expects float32 (samples, 7), its elements as columns; '" + file + "' has 6 columns");
  EXPECT_PRED2(contains, refusal(file, {{"x", DType::f32, {-1, 4}}}), "has 6 columns");
  EXPECT_PRED2(contains, refusal(scratch.write("other.csv", "1\n"), {{"x", DType::f32, {2}}}),
               "has 1 column; hint: commas stand between columns");
  EXPECT_PRED2(contains, refusal(file, {{"x", DType::f32, {-1, -1}}}), "more than one open extent; hint: use .npy");
  EXPECT_PRED2(contains, refusal(file, {{"x", DType::f32, {-1, 0}}}), "has 6 columns");
  Ints huge(6, int64_t{1} << 40);
  EXPECT_PRED2(contains, refusal(file, {{"x", DType::f32, huge}}), "has 6 columns");
}

TEST(Format, IsToldByTheFirstBytesThenByTheName) {
  Scratch scratch;
  EXPECT_EQ(format_of_input(numpy_file("float32.npy")), DataFormat::npy);
  EXPECT_EQ(format_of_input(numpy_file("stored.npz")), DataFormat::npz);
  EXPECT_EQ(format_of_input(scratch.write("x.csv", "1")), DataFormat::csv);
  EXPECT_EQ(format_of_input(scratch.write("X.CSV", "")), DataFormat::csv);
  EXPECT_EQ(format_of_input(scratch.write("misnamed.csv", slurp(numpy_file("float32.npy")))), DataFormat::npy);
  auto refused = [&](const std::string& path) { return message_of<Error>([&] { format_of_input(path); }); };
  EXPECT_PRED2(contains, refused(scratch.write("x.npy", "1,2")), "not an .npy file");
  EXPECT_PRED2(contains, refused(scratch.write("x.npz", "1,2")), "not an .npz file");
  EXPECT_PRED2(contains, refused(scratch.write("x.dat", "1,2")), "its format is not known; expected .npy, .npz or .csv");
  EXPECT_PRED2(contains, refused(scratch.write("x.webp", "RIFF")), "of images, JPEG and PNG are read; hint: save it as one of them");
  EXPECT_PRED2(contains, refused(scratch.write("x.dat", "\x89PNG")), "is an image");
  EXPECT_PRED2(contains, refused(scratch.write("x.jpeg", "")), "is an image");
  EXPECT_PRED2(contains, refused(scratch.write("x.dat", "\x80\x04\x95")), "pickles are never read");
  EXPECT_PRED2(contains, refused(scratch.write("x.keras", "PK\x03\x04")), "is a model");
  EXPECT_PRED2(contains, refused(scratch.path("")), "is a folder");
  EXPECT_PRED2(contains, refused(scratch.path("missing.npy")), "missing.npy");
}

TEST(Output, IsOfTheFormatItsNameSays) {
  Scratch scratch;
  for (std::string name : {"x.npy", "x.npz", "x.csv"}) {
    auto output = open_output(scratch.path(name), {{"out", DType::bf16, {2}}});
    output->write({Tensor::of<float>({1, 2}, std::vector<float>{1.5f, -2}).converted(DType::bf16)});
    output->commit();
    Tensor read = all_samples(scratch.path(name), {{"out", DType::f64, {2}}})[0];
    EXPECT_EQ(read.as<double>()[0], 1.5);
    EXPECT_EQ(read.as<double>()[1], -2.0);
  }
  EXPECT_EQ(to_string(NpyReader(scratch.path("x.npy")).type()), "f32[1, 2]");
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] {
                 open_output(scratch.path("x.txt"), {{"out", DType::f32, {2}}});
               }),
               "the name says the format; expected .npy, .npz or .csv");
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] {
                 open_output(scratch.path("y.npy"), {{"a", DType::f32, {}}, {"b", DType::f32, {}}});
               }),
               "the model has 2 outputs");
}

}  // namespace
}  // namespace tutti
