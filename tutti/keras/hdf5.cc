#include "tutti/keras/hdf5.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include "tutti/base/error.h"
#include "tutti/keras/hdf5/attributes.h"
#include "tutti/keras/hdf5/dataset.h"
#include "tutti/keras/hdf5/links.h"

namespace tutti::keras {

using hdf5::Attribute;
using hdf5::corrupt;
using hdf5::Dataset;
using hdf5::Datatype;
using hdf5::Link;
using hdf5::MessageType;
using hdf5::ObjectHeader;
using hdf5::unsupported;

namespace {

constexpr int max_depth = 64;

// The text of an error without its "[hdf5] ".
std::string_view plain(const Error& error) {
  std::string_view text = error.what();
  size_t end = text.find("] ");
  return end == text.npos ? text : text.substr(end + 2);
}

// Runs `f`; errors from inside of the format get the name of the object that was asked for.
template <class F>
auto named(std::string_view path, F&& f) {
  const auto name = [&] { return path.empty() ? "/" : escape(path); };
  try {
    return f();
  } catch (const Unsupported& error) {
    unsupported("'{}': {}", name(), plain(error));
  } catch (const InvalidModel& error) {
    corrupt("'{}': {}", name(), plain(error));
  }
}

}  // namespace

class Hdf5File::Impl {
 public:
  explicit Impl(std::shared_ptr<const ByteSource> source) : storage_(std::move(source)) {
    if (storage_.extension() != hdf5::undefined) {
      ObjectHeader extension = read_object_header(storage_, storage_.extension());
      if (extension.find(MessageType::driver_info)) unsupported("a file in several parts (driver information)");
      if (extension.find(MessageType::cache_image)) unsupported("a file with a metadata cache image");
    }
    if (!header(storage_.root()).is_group()) corrupt("the root is not a group");
  }

  struct Place {
    uint64_t address;
    std::string path;  // without needless slashes
  };
  // Nothing when a part of the path is not there.
  std::optional<Place> find(std::string_view path) {
    uint64_t address = storage_.root();
    std::string walked;
    for (int depth = 0; !path.empty(); ++depth) {
      if (depth == max_depth) corrupt("groups nested deeper than {}", max_depth);
      std::string_view name = path.substr(0, path.find('/'));
      path.remove_prefix(std::min(name.size() + 1, path.size()));
      if (name.empty()) continue;
      const Group* group = find_group(address, walked);
      const Link* link = group == nullptr ? nullptr : group->find(name);
      if (link == nullptr) return {};
      if (!walked.empty()) walked += '/';
      walked += name;
      if (link->kind != Link::Kind::hard) unsupported("'{}' is a {} link; links are not followed", escape(walked), kind_name(link->kind));
      address = link->address;
    }
    return Place{address, std::move(walked)};
  }

  Place get(std::string_view path) {
    if (auto place = find(path)) return *place;
    corrupt("there is no such object");
  }

  const ObjectHeader& header(uint64_t address) {
    if (header_.address != address) {
      attributes_.reset();
      header_ = read_object_header(storage_, address);
    }
    return header_;
  }

  std::vector<std::string> children(std::string_view path) {
    Place place = get(path);
    const Group* group = find_group(place.address, place.path);
    if (group == nullptr) corrupt("it is not a group");
    std::vector<std::string> out;
    for (const auto& link : group->links) out.push_back(link.name);
    return out;
  }

  Kind kind(std::string_view path) {
    auto place = find(path);
    if (!place) return Kind::absent;
    const ObjectHeader& object = header(place->address);
    return object.is_group() ? Kind::group : object.is_dataset() ? Kind::dataset : Kind::other;
  }

  Dataset dataset(std::string_view path) {
    const ObjectHeader& object = header(get(path).address);
    if (!object.is_dataset()) corrupt("it is not a data set");
    Dataset out = parse_dataset(storage_, object);
    // How Keras stores bfloat16, which HDF5 does not have.
    if (out.type.kind == Datatype::Class::opaque && out.type.size == 2 && keras_dtype(object) == "bfloat16") {
      out.type.kind = Datatype::Class::number;
      out.type.dtype = DType::bf16;
    }
    return out;
  }

  Tensor read(std::string_view path) {
    Dataset data = dataset(path);
    check_numbers(data.type);
    check_size(storage_, data);
    Tensor out(data.type.dtype, data.space.shape());
    read_elements(storage_, data, out.bytes());
    to_native(data.type, out.bytes());
    return out;
  }

  std::vector<std::string> read_strings(std::string_view path) {
    Dataset data = dataset(path);
    check_strings(data.type);
    check_size(storage_, data);
    std::vector<std::byte> elements(data.bytes());
    read_elements(storage_, data, elements);
    return decode_strings(storage_, data.type, elements);
  }

  const std::vector<Attribute>& attributes(const ObjectHeader& object) {
    if (!attributes_) attributes_ = read_attributes(storage_, object);
    return *attributes_;
  }

  const Attribute* find_attribute(const ObjectHeader& object, std::string_view name) {
    for (const auto& attribute : attributes(object))
      if (attribute.name == name) return &attribute;
    return nullptr;
  }

  const Attribute& attribute(std::string_view path, std::string_view name) {
    if (auto* found = find_attribute(header(get(path).address), name)) return *found;
    corrupt("there is no attribute '{}'", escape(name));
  }

  Tensor numbers(std::string_view path, std::string_view name) {
    const Attribute& found = attribute(path, name);
    check_numbers(found.type);
    storage_.charge_data(found.data.size());
    Tensor out(found.type.dtype, found.space.shape());
    std::copy(found.data.begin(), found.data.end(), out.bytes().begin());
    to_native(found.type, out.bytes());
    return out;
  }

  std::vector<std::string> strings(std::string_view path, std::string_view name) {
    const Attribute& found = attribute(path, name);
    check_strings(found.type);
    return decode_strings(storage_, found.type, found.data);
  }

  static bool is_strings(const Datatype& type) {
    return type.kind == Datatype::Class::fixed_string || type.kind == Datatype::Class::variable_string;
  }
  static void check_numbers(const Datatype& type) {
    if (is_strings(type)) corrupt("it holds strings, not numbers");
    if (type.kind == Datatype::Class::opaque && type.size == 2)
      unsupported("elements of type {}; hint: it may be bfloat16, which Keras reads back from .keras files only", type.description);
    if (type.kind != Datatype::Class::number) unsupported("elements of type {}", type.description);
  }
  static void check_strings(const Datatype& type) {
    if (is_strings(type)) return;
    if (type.kind == Datatype::Class::number) corrupt("it holds {}, not strings", name(type.dtype));
    unsupported("elements of type {}", type.description);
  }

  std::mutex mutex;

 private:
  struct Group {
    std::string path;  // the one way that leads here
    std::vector<Link> links;
    std::vector<uint32_t> by_name;  // indexes into links

    const Link* find(std::string_view name) const {
      auto at = std::lower_bound(by_name.begin(), by_name.end(), name, [&](uint32_t i, std::string_view n) { return links[i].name < n; });
      return at != by_name.end() && links[*at].name == name ? &links[*at] : nullptr;
    }
  };

  // A group reached by two paths could be its own ancestor, or double with every level: the tree must be a tree.
  const Group* find_group(uint64_t address, const std::string& path) {
    auto found = groups_.find(address);
    if (found == groups_.end()) {
      const ObjectHeader& object = header(address);
      if (!object.is_group()) return nullptr;
      Group group{path, read_links(storage_, object), {}};
      group.by_name.resize(group.links.size());
      for (uint32_t i = 0; i < group.by_name.size(); ++i) group.by_name[i] = i;
      std::sort(group.by_name.begin(), group.by_name.end(),
                [&](uint32_t a, uint32_t b) { return group.links[a].name < group.links[b].name; });
      found = groups_.emplace(address, std::move(group)).first;
    }
    if (found->second.path != path) unsupported("the groups '/{}' and '/{}' are one", escape(found->second.path), escape(path));
    return &found->second;
  }

  static std::string_view kind_name(Link::Kind kind) {
    return kind == Link::Kind::soft ? "soft" : kind == Link::Kind::external ? "external" : "user-defined";
  }

  std::string keras_dtype(const ObjectHeader& object) {
    const Attribute* found = find_attribute(object, "dtype");
    if (found == nullptr || !is_strings(found->type)) return "";
    auto values = decode_strings(storage_, found->type, found->data);
    return values.size() == 1 ? values[0] : "";
  }

  hdf5::Storage storage_;
  std::map<uint64_t, Group> groups_;                  // by address
  ObjectHeader header_;                               // the last one asked for
  std::optional<std::vector<Attribute>> attributes_;  // its attributes, once asked for
};

Hdf5File::Hdf5File(std::shared_ptr<const ByteSource> source) {
  try {
    impl_ = std::make_unique<Impl>(std::move(source));
  } catch (const InvalidArgument& error) {
    corrupt("{}", plain(error));
  }
}
Hdf5File::~Hdf5File() = default;
Hdf5File::Hdf5File(Hdf5File&&) noexcept = default;
Hdf5File& Hdf5File::operator=(Hdf5File&&) noexcept = default;

Hdf5File::Kind Hdf5File::kind(std::string_view path) const {
  std::lock_guard lock(impl_->mutex);
  return named(path, [&] { return impl_->kind(path); });
}

std::vector<std::string> Hdf5File::children(std::string_view group) const {
  std::lock_guard lock(impl_->mutex);
  return named(group, [&] { return impl_->children(group); });
}

Type Hdf5File::type(std::string_view dataset) const {
  std::lock_guard lock(impl_->mutex);
  return named(dataset, [&] {
    Dataset data = impl_->dataset(dataset);
    Impl::check_numbers(data.type);
    return Type{data.type.dtype, data.space.shape()};
  });
}

Tensor Hdf5File::read(std::string_view dataset) const {
  std::lock_guard lock(impl_->mutex);
  return named(dataset, [&] { return impl_->read(dataset); });
}

bool Hdf5File::holds_strings(std::string_view dataset) const {
  std::lock_guard lock(impl_->mutex);
  return named(dataset, [&] { return Impl::is_strings(impl_->dataset(dataset).type); });
}

std::vector<std::string> Hdf5File::read_strings(std::string_view dataset) const {
  std::lock_guard lock(impl_->mutex);
  return named(dataset, [&] { return impl_->read_strings(dataset); });
}

std::vector<std::string> Hdf5File::attribute_names(std::string_view object) const {
  std::lock_guard lock(impl_->mutex);
  return named(object, [&] {
    std::vector<std::string> out;
    for (const auto& attribute : impl_->attributes(impl_->header(impl_->get(object).address))) out.push_back(attribute.name);
    return out;
  });
}

bool Hdf5File::has_attribute(std::string_view object, std::string_view name) const {
  std::lock_guard lock(impl_->mutex);
  return named(object, [&] { return impl_->find_attribute(impl_->header(impl_->get(object).address), name) != nullptr; });
}

std::vector<std::string> Hdf5File::strings(std::string_view object, std::string_view attribute) const {
  std::lock_guard lock(impl_->mutex);
  return named(object, [&] { return named(attribute, [&] { return impl_->strings(object, attribute); }); });
}

Tensor Hdf5File::numbers(std::string_view object, std::string_view attribute) const {
  std::lock_guard lock(impl_->mutex);
  return named(object, [&] { return named(attribute, [&] { return impl_->numbers(object, attribute); }); });
}

}  // namespace tutti::keras
