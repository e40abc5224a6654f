// Files that once broke a reader, each with the refusal it gets now. They came out of the fuzzers and of tests that damage good files.
#include <gtest/gtest.h>

#include "tests/hostile.h"
#include "tutti/keras/hdf5.h"

namespace tutti {

namespace {

std::shared_ptr<const ByteSource> broken(const std::string& name) { return open_file(TUTTI_SOURCE_DIR "/tests/broken/" + name); }

// The refusal of `run`, which keeps the promise of tests/hostile.h.
std::string refusal(const std::function<void()>& run) {
  MemoryLimit limit;
  Outcomes outcomes;
  std::string message;
  expect_contained(outcomes, "broken file", [&] {
    try {
      run();
    } catch (const Error& error) {
      message = error.what();
      throw;
    }
  });
  return message;
}

TEST(broken, a_shuffle_of_enormous_elements_took_seconds) {
  EXPECT_EQ(refusal([] { keras::Hdf5File(broken("shuffle_size.h5")).read("none"); }),
            "[hdf5] 'none': a shuffle of elements of 4278190084 bytes, expected 4");
}

}  // namespace

}  // namespace tutti
