// Outputs that appear whole or not at all, and archives written into them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/scratch.h"
#include "tutti/base/error.h"
#include "tutti/base/file.h"
#include "tutti/base/zip.h"
#include "tutti/base/zip_writer.h"

namespace tutti {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST(Outputs, WhatWasWrittenCanBeReadBackBeforeTheCommit) {
  Scratch scratch;
  OutputFile file(scratch.path("x"));
  file.write("hello, world");
  std::string back(5, '\0');
  file.read_at(7, std::as_writable_bytes(std::span(back)));
  EXPECT_EQ(back, "world");
  EXPECT_THROW(file.read_at(8, std::as_writable_bytes(std::span(back))), InvalidArgument);
  file.write("!");
  file.commit();
  EXPECT_EQ(slurp(scratch.path("x")), "hello, world!");
}

TEST(OutputsDeathTest, TheEndOfTheProcessLeavesCommittedOutputsOnly) {
  Scratch scratch;
  EXPECT_EXIT(
      {
        OutputFile whole(scratch.path("whole"));
        OutputFile begun(scratch.path("begun"));
        whole.write("whole");
        whole.commit();
        begun.write("begun");
        exit_discarding_outputs(77);
      },
      testing::ExitedWithCode(77), "");
  EXPECT_EQ(slurp(scratch.path("whole")), "whole");
  EXPECT_EQ(scratch.files(), 1u);
}

TEST(OutputsDeathTest, AProcessThatIsKilledLeavesNothing) {
  Scratch scratch;
  EXPECT_EXIT(
      {
        OutputFile begun(scratch.path("begun"));
        begun.write(std::string(1 << 20, 'x'));
        ::raise(SIGKILL);
      },
      testing::KilledBySignal(SIGKILL), "");
  EXPECT_EQ(scratch.files(), 0u);
}

TEST(Outputs, WhatAnotherProcessOfThisNumberLeftIsPassedOver) {
  Scratch scratch;
  for (int i = 0; i < 1000; ++i) scratch.write(fmt::format("x.{}-{}.part", ::getpid(), i), "old");
  OutputFile file(scratch.path("x"));
  file.write("new");
  file.commit();
  EXPECT_EQ(slurp(scratch.path("x")), "new");
}

TEST(Outputs, APlaceThatCannotBeIsRefusedBeforeAnythingIsWritten) {
  Scratch scratch;
  EXPECT_THROW(OutputFile(scratch.path("nowhere/x")), InvalidArgument);
  EXPECT_THROW(OutputFile(scratch.path(std::string(250, 'x'))), InvalidArgument);
}

TEST(ZipWriter, MembersAreReadBackAndHeadsFilledIn) {
  Scratch scratch;
  OutputFile file(scratch.path("x.zip"));
  ZipWriter zip(file);
  zip.begin("folder/a");
  zip.write(bytes_of("first, "));
  zip.write(bytes_of("second"));
  zip.end();
  zip.begin("ü", 5);
  zip.write(bytes_of(" of what follows"));
  zip.end("count");
  zip.begin("empty");
  zip.end();
  zip.finish();
  file.commit();
  ZipReader reader(open_file(scratch.path("x.zip")));
  ASSERT_EQ(reader.members().size(), 3u);
  EXPECT_EQ(text_of(*reader.open(*reader.find("folder/a"))), "first, second");
  EXPECT_EQ(text_of(*reader.open(*reader.find("ü"))), "count of what follows");
  EXPECT_EQ(reader.find("empty")->size, 0u);
  EXPECT_EQ(reader.find("empty")->crc, 0u);
}

TEST(ZipWriter, TheSameMembersGiveTheSameBytes) {
  Scratch scratch;
  for (std::string name : {"x.zip", "y.zip"}) {
    OutputFile file(scratch.path(name));
    ZipWriter zip(file);
    zip.begin("a");
    zip.write(bytes_of("text"));
    zip.end();
    zip.finish();
    file.commit();
  }
  EXPECT_EQ(slurp(scratch.path("x.zip")), slurp(scratch.path("y.zip")));
}

TEST(ZipWriter, ManyMembersNeedTheLargerDirectory) {
  Scratch scratch;
  constexpr int count = 70'000;  // beyond 16 bits
  OutputFile file(scratch.path("x.zip"));
  ZipWriter zip(file);
  for (int i = 0; i < count; ++i) {
    zip.begin(std::to_string(i));
    zip.end();
  }
  zip.finish();
  file.commit();
  ZipReader reader(open_file(scratch.path("x.zip")));
  EXPECT_EQ(reader.members().size(), static_cast<size_t>(count));
  EXPECT_EQ(reader.members().back().name, std::to_string(count - 1));
}

TEST(ZipWriter, NamesHaveABound) {
  Scratch scratch;
  OutputFile file(scratch.path("x.zip"));
  ZipWriter zip(file);
  EXPECT_THROW(zip.begin(""), InvalidArgument);
  EXPECT_THROW(zip.begin(std::string(5000, 'x')), InvalidArgument);
}

}  // namespace
}  // namespace tutti
