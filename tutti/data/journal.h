// What a long run has finished, kept beside its output so that an interrupted one can go on: OUT.resume, a line of settings and then a line
// for each item that has a name, and OUT.resume.rows, the bytes of its rows. Both only grow; of an item that is not whole in both nothing
// is taken, so a run may end at any moment. The rows of an .npy are that file already, but for its final name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tutti/base/file.h"
#include "tutti/base/json.h"
#include "tutti/data/item_writer.h"

namespace tutti {

class Journal {
 public:
  struct Run {
    std::string output;
    Json settings;
    std::vector<ArraySpec> arrays;
    bool named = true;  // whether the items have names
  };
  // Begins a journal, or with `resume` goes on with the one that is there, if there is one. Throws InvalidArgument when that one was begun
  // with other settings.
  Journal(Run run, bool resume);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  int64_t resumed() const { return resumed_; }  // items that earlier runs finished
  int64_t items() const { return items_; }      // all that are finished
  // Throws InvalidArgument unless the next one of those that earlier runs finished has this name; to be called for each of them in turn.
  void check_next(const std::string& name);
  // Finished items; known to the system when it returns.
  void append(const ItemRows& rows);
  // So many that have no names: the bytes of their rows, an array each.
  void append(int64_t count, std::span<const std::span<const std::byte>> arrays);
  // So many items will be there in the end: room is set aside, if the file system does that, which makes writing cheaper.
  void expect(int64_t items);
  // All finished items in turn, some at a time.
  void replay(const std::function<void(const ItemRows& rows)>& take);
  // The output appears under its name, in one piece, and the journal is gone. `open` makes the writer of formats that need one.
  void finish(const std::function<std::unique_ptr<ItemWriter>()>& open);
  int64_t failed();  // of all items that are finished
  void remove();     // when it has served

 private:
  class File;
  Type all_rows() const;  // of the first array
  Run run_;
  bool npy_;  // the rows stand behind the header that NumPy writes
  int64_t row_bytes_ = 0, items_ = 0, resumed_ = 0, checked_ = 0;
  uint64_t header_ = 0, checked_at_ = 0;  // offsets in the lines
  uint64_t rows_at_ = 0;                  // where rows begin: behind the header of an .npy
  std::unique_ptr<File> lines_, rows_;
};

}  // namespace tutti
