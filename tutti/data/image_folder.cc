#include "tutti/data/image_folder.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <set>

#include "tutti/base/error.h"
#include "tutti/data/image.h"

namespace tutti {

namespace {

class ImageRows : public RowSource {
 public:
  ImageRows(std::vector<std::string> files, ImageSampler sampler, DType dtype, bool keeps)
      : RowSource({dtype, with_rows(std::ssize(files), sampler.row())}), files_(std::move(files)), sampler_(std::move(sampler)) {
    if (!keeps) return;
    kept_ = Tensor(type_);
    states_ = std::vector<std::atomic<char>>(files_.size());
  }

  void read(std::span<const int64_t> rows, std::span<std::byte> to) const override {
    const size_t bytes = row_bytes();
    for (size_t i = 0; i < rows.size(); ++i) read_one(static_cast<size_t>(rows[i]), to.subspan(i * bytes, bytes));
  }

 private:
  enum : char { unknown, being_kept, kept };

  void read_one(size_t row, std::span<std::byte> to) const {
    const bool keeps = !states_.empty();
    const std::span<std::byte> place = keeps ? kept_.bytes().subspan(row * to.size(), to.size()) : std::span<std::byte>();
    if (keeps && states_[row].load(std::memory_order_acquire) == kept) {
      std::ranges::copy(place, to.begin());
      return;
    }
    try {
      sampler_.write(read_item({.name = files_[row], .file = files_[row]}, ImageLimits{}.file_bytes), to);
    } catch (const Error& error) {
      fail<InvalidArgument>("fit", "the image '{}' cannot be read: {}", escape(files_[row]), error.what());
    }
    char before = unknown;
    if (!keeps || !states_[row].compare_exchange_strong(before, being_kept)) return;
    std::ranges::copy(to, place.begin());
    states_[row].store(kept, std::memory_order_release);
  }

  std::vector<std::string> files_;
  ImageSampler sampler_;
  mutable Tensor kept_;
  mutable std::vector<std::atomic<char>> states_;  // by row
};

}  // namespace

ImageFolder list_images(const std::string& folder, const std::vector<std::string>& known) {
  struct Found {
    std::string class_name, file;
  };
  std::vector<Found> found;
  const auto items = items_of_folder(folder);
  for (Item item; items->next(item, std::chrono::milliseconds(0)) == ItemSource::Next::item;) {
    const size_t slash = item.name.find('/');
    found.push_back({slash == std::string::npos ? "" : item.name.substr(0, slash), item.file});
  }
  ImageFolder out;
  std::set<std::string> names;
  for (const Found& one : found) names.insert(one.class_name);
  if (names.contains("") && names.size() > 1)
    fail<InvalidArgument>("fit", "'{}' has images beside the folders of classes; hint: a folder a class, and nothing else", escape(folder));
  out.classes = known;
  if (known.empty() && !names.contains("")) out.classes.assign(names.begin(), names.end());
  if (!names.contains(""))
    for (const std::string& name : names)
      if (std::find(out.classes.begin(), out.classes.end(), name) == out.classes.end())
        fail<InvalidArgument>("fit", "'{}' has a folder '{}', which is none of the {} classes{}", escape(folder), escape(name, 60),
                              out.classes.size(), did_you_mean(name, out.classes));
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.class_name < b.class_name; });
  for (Found& one : found) {
    out.files.push_back(std::move(one.file));
    if (one.class_name.empty()) continue;
    out.labels.push_back(static_cast<int32_t>(std::find(out.classes.begin(), out.classes.end(), one.class_name) - out.classes.begin()));
  }
  return out;
}

std::shared_ptr<const RowSource> image_rows(std::vector<std::string> files, ImageSampler sampler, DType dtype, bool keeps) {
  return std::make_shared<ImageRows>(std::move(files), std::move(sampler), dtype, keeps);
}

}  // namespace tutti
