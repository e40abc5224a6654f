// What is read one by one: files of a folder, of a list, members of an archive, rows of a table. They come in order and as they are needed.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tutti/base/file.h"
#include "tutti/base/tensor.h"

namespace tutti {

struct Item {
  std::string name;                                // as results call it; rows of a table have none
  std::string file = {};                           // to open; or, when there is none,
  std::shared_ptr<const ByteSource> archive = {};  // the part of it
  uint64_t offset = 0, size = 0;
  std::string link = {};           // where it is none of the archive's files, but points to one
  int64_t first = 0, samples = 1;  // rows of a table: from which on, and how many
  std::vector<Tensor> rows = {};   // what they hold, an input each, where they had to be read to be found
};

// Where an item's samples go: the bytes of its rows, a span for each of the model's inputs.
using Slots = std::span<const std::span<std::byte>>;

// All bytes of an item; throws InvalidArgument when it is not there or larger than `limit`.
std::vector<std::byte> read_item(const Item& item, uint64_t limit);

class ItemSource {
 public:
  enum class Next { item, none_yet, end };
  virtual ~ItemSource() = default;
  // The next item. A stream that has none within `wait` says so.
  virtual Next next(Item& item, std::chrono::milliseconds wait) = 0;
  // How many there are in all, where that is known.
  virtual std::optional<int64_t> count() const { return {}; }
};

// Items with these names that are also their files.
std::unique_ptr<ItemSource> items_of_names(std::vector<std::string> names);
// The images in a folder and the folders below, named by their path in it and sorted by that as a string. Links to folders are not
// followed.
std::unique_ptr<ItemSource> items_of_folder(const std::string& folder);
// A path a line; blank lines are left out. "-": standard input, as lines arrive.
std::unique_ptr<ItemSource> items_of_list(const std::string& file);
// The images in a tar archive, in its order.
std::unique_ptr<ItemSource> items_of_tar(std::shared_ptr<const ByteSource> archive, const std::string& file);

}  // namespace tutti
