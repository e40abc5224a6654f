// The compiled programs of one model, one a batch size and shape of rows. Sizes are few (1, 2, 3, 4, 6, 8, 12, ... the largest) and a
// batch of another size is filled with zeros; models that mix samples get exact sizes. Programs are compiled by whoever asks: the loader at
// first, later a background thread, while the owner of the device goes on with those that are there. Of models with open extents clients
// choose how large a program is: beyond `most_bytes` it is refused, and those that were not used lately go before all have twice that.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "tutti/run/predictor.h"
#include "tutti/serve/failure.h"

namespace tutti::serve {

using Rows = std::vector<Shape>;  // of one sample, an input each

class Programs {
 public:
  // most_bytes: of a program's memory; 0: a quarter of the device's.
  Programs(std::shared_ptr<const keras::AnyModel> model, CompileOptions options, int64_t most_bytes = 0);

  bool is_batched() const { return batched_; }
  int64_t largest() const { return options_.batch; }
  const std::vector<int64_t>& sizes() const { return sizes_; }

  struct Choice {
    std::shared_ptr<Predictor> program;  // null: there is none that would do, `wanted` is to be compiled first, or there was a failure
    int64_t samples = 0;                 // to compute of those offered; the rest is for the next batch
    int64_t size = 0;                    // of the program: more than samples where it is filled up
    int64_t wanted = 0;                  // a size that is not compiled and may be better; 0: none
    Failure failure = {};                // why no program would do
  };
  // For so many samples that are ready, by the times measured so far. From any thread.
  Choice choose(const Rows& rows, int64_t ready);
  void add_time(const Rows& rows, int64_t size, double seconds);  // of a batch of that size

  // Compiles and keeps; what goes wrong is kept too. Others may choose() meanwhile.
  Failure compile(const Rows& rows, int64_t size);
  // Whether values of others, who may change them meanwhile, can be computed with: nothing is found by its value.
  bool may_borrow() const { return may_borrow_; }
  int64_t compilations() const;

 private:
  struct Entry {
    Rows rows;
    int64_t size;
    std::shared_ptr<Predictor> program = nullptr;
    double seconds = 0;      // of a run, on average
    int64_t runs = 0;        // that were measured
    bool cold = true;        // the first run tells nothing
    double measured_at = 0;  // by computed_, when last
    Failure failure = {};    // instead of a program
    int64_t bytes = 0;       // of its memory, as planned
  };
  void check_memory(Entry& made) const;
  void drop_oldest();
  Entry* find(const Rows& rows, int64_t size);
  bool is_to_be_tried(const Entry& entry) const;
  std::shared_ptr<const keras::AnyModel> model_;
  CompileOptions options_;
  bool batched_ = false, may_borrow_ = false, open_ = false;
  int64_t most_bytes_ = 0;
  std::vector<int64_t> sizes_;
  std::mutex compiling_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // most recently used first
  int64_t compilations_ = 0;
  double computed_ = 0;  // seconds, all of it
};

}  // namespace tutti::serve
