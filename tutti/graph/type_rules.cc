#include "tutti/graph/type_rules.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/graph/graph.h"

namespace tutti::type_rules {

namespace {

template <class... Args>
[[noreturn]] void refuse(const Signature& s, fmt::format_string<Args...> format, Args&&... args) {
  std::string message = fmt::vformat(format, fmt::make_format_args(args...));
  for (const auto& operand : s.operands) message += "; operand " + to_string(operand);
  fail<InvalidArgument>(fmt::format("graph] [{}", name(s.op)), "{}", message);
}

const Ints& ints(const Signature& s, std::string_view attribute, int64_t length) {
  const Ints& out = s.attributes.ints(attribute);
  if (static_cast<int64_t>(out.size()) != length) refuse(s, "{} has {} entries, expected {}", attribute, out.size(), length);
  return out;
}

void require_axes(const Signature& s, const Ints& axes, int64_t rank, std::string_view what) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < 0 || axes[i] >= rank) refuse(s, "{} {} is outside of rank {}", what, to_string(axes), rank);
    if (std::find(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i), axes[i]) != axes.begin() + static_cast<std::ptrdiff_t>(i))
      refuse(s, "{} {} repeats an axis", what, to_string(axes));
  }
}

void require_same(const Signature& s) {
  for (const auto& operand : s.operands)
    if (!(operand == s.operands[0])) refuse(s, "operands have one type");
}

DType dtype_attribute(const Signature& s) {
  auto dtype = dtype_from_name(s.attributes.text("dtype"));
  if (!dtype) refuse(s, "unknown dtype '{}'", s.attributes.text("dtype"));
  return *dtype;
}

void require_kind(const Signature& s, std::initializer_list<std::string_view> kinds) {
  const auto& kind = s.attributes.text("kind");
  if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) refuse(s, "unknown kind '{}'", kind);
}

// Extent that `count` elements have after dilation, checked against overflow through Shape's own limit.
int64_t dilated(const Signature& s, int64_t count, int64_t dilation) {
  if (dilation < 1 || dilation > (int64_t{1} << 30)) refuse(s, "dilation {} is out of range", dilation);
  return count == 0 ? 0 : Shape({count - 1, dilation}).elements() + 1;
}

int64_t bounded(const Signature& s, int64_t value, std::string_view what) {
  if (value < -(int64_t{1} << 48) || value > (int64_t{1} << 48)) refuse(s, "{} {} is out of range", what, value);
  return value;
}

// Positions of a window of `window` over `extent`, both dilated already.
int64_t positions(const Signature& s, int64_t extent, int64_t window, int64_t stride) {
  if (stride < 1) refuse(s, "stride {} is not positive", stride);
  return extent < window ? 0 : (extent - window) / stride + 1;
}

}  // namespace

std::vector<Type> declared(const Signature& s) {
  if (s.declared == nullptr) refuse(s, "a leaf declares its type");
  if (s.op == Op::parameter) {
    const auto& role = s.attributes.text("role");
    if (role != "input" && role != "weight" && role != "state") refuse(s, "unknown role '{}'", role);
  }
  if (s.op == Op::iota) {
    if (s.declared->dtype == DType::boolean) refuse(s, "counts in numbers");
    int64_t axis = s.attributes.integer("dimension");
    if (axis < 0 || axis >= s.declared->shape.rank()) refuse(s, "dimension {} is outside of {}", axis, to_string(*s.declared));
  }
  return {*s.declared};
}

std::vector<Type> same(const Signature& s) {
  require_same(s);
  return {s.operands[0]};
}

std::vector<Type> numeric(const Signature& s) {
  require_same(s);
  if (s.operands[0].dtype == DType::boolean) refuse(s, "takes numbers");
  return {s.operands[0]};
}

std::vector<Type> floating(const Signature& s) {
  require_same(s);
  if (!is_float(s.operands[0].dtype)) refuse(s, "takes floats");
  return {s.operands[0]};
}

std::vector<Type> bits(const Signature& s) {
  require_same(s);
  if (is_float(s.operands[0].dtype)) refuse(s, "takes integers or bool");
  return {s.operands[0]};
}

std::vector<Type> integral(const Signature& s) {
  require_same(s);
  if (!is_integer(s.operands[0].dtype)) refuse(s, "takes integers");
  return {s.operands[0]};
}

std::vector<Type> predicate(const Signature& s) {
  require_same(s);
  if (s.op == Op::compare) {
    static constexpr std::string_view directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
    if (std::find(std::begin(directions), std::end(directions), s.attributes.text("direction")) == std::end(directions))
      refuse(s, "unknown direction '{}'", s.attributes.text("direction"));
  }
  return {{DType::boolean, s.operands[0].shape}};
}

std::vector<Type> converted(const Signature& s) { return {{dtype_attribute(s), s.operands[0].shape}}; }

std::vector<Type> bitcast(const Signature& s) {
  DType to = dtype_attribute(s);
  if (byte_size(to) != byte_size(s.operands[0].dtype) || to == DType::boolean) refuse(s, "cannot reinterpret as {}", name(to));
  return {{to, s.operands[0].shape}};
}

std::vector<Type> selected(const Signature& s) {
  if (s.operands[0].dtype != DType::boolean || !(s.operands[0].shape == s.operands[1].shape) || !(s.operands[1] == s.operands[2]))
    refuse(s, "takes a predicate and two values of its shape");
  return {s.operands[1]};
}

std::vector<Type> broadcasted(const Signature& s) {
  const Shape& from = s.operands[0].shape;
  Shape to(s.attributes.ints("shape"));
  const Ints& dimensions = ints(s, "dimensions", from.rank());
  require_axes(s, dimensions, to.rank(), "dimensions");
  for (int64_t i = 0; i < from.rank(); ++i)
    if (from[i] != 1 && from[i] != to[dimensions[static_cast<size_t>(i)]]) refuse(s, "cannot broadcast to {}", to_string(to));
  return {{s.operands[0].dtype, to}};
}

std::vector<Type> reshaped(const Signature& s) {
  Shape to(s.attributes.ints("shape"));
  if (to.elements() != s.operands[0].shape.elements()) refuse(s, "cannot reshape to {}", to_string(to));
  return {{s.operands[0].dtype, to}};
}

std::vector<Type> transposed(const Signature& s) {
  const Shape& from = s.operands[0].shape;
  const Ints& permutation = ints(s, "permutation", from.rank());
  require_axes(s, permutation, from.rank(), "permutation");
  Ints to;
  for (int64_t axis : permutation) to.push_back(from[axis]);
  return {{s.operands[0].dtype, to}};
}

std::vector<Type> sliced(const Signature& s) {
  const Shape& from = s.operands[0].shape;
  const Ints &start = ints(s, "start", from.rank()), &limit = ints(s, "limit", from.rank()), &strides = ints(s, "strides", from.rank());
  Ints to;
  for (size_t i = 0; i < start.size(); ++i) {
    if (start[i] < 0 || start[i] > limit[i] || limit[i] > from[static_cast<int64_t>(i)] || strides[i] < 1)
      refuse(s, "start {}, limit {}, strides {} do not fit", to_string(start), to_string(limit), to_string(strides));
    to.push_back(limit[i] == start[i] ? 0 : (limit[i] - start[i] - 1) / strides[i] + 1);
  }
  return {{s.operands[0].dtype, to}};
}

std::vector<Type> padded(const Signature& s) {
  const Shape& from = s.operands[0].shape;
  if (s.operands[1].shape.rank() != 0 || s.operands[1].dtype != s.operands[0].dtype) refuse(s, "takes a scalar padding value");
  const Ints &low = ints(s, "low", from.rank()), &high = ints(s, "high", from.rank()), &interior = ints(s, "interior", from.rank());
  Ints to;
  for (size_t i = 0; i < low.size(); ++i) {
    int64_t extent = dilated(s, from[static_cast<int64_t>(i)], bounded(s, interior[i], "interior padding") + 1) +
                     bounded(s, low[i], "padding") + bounded(s, high[i], "padding");
    to.push_back(std::max<int64_t>(extent, 0));
  }
  return {{s.operands[0].dtype, to}};
}

std::vector<Type> concatenated(const Signature& s) {
  int64_t axis = s.attributes.integer("dimension"), total = 0;
  const Shape& first = s.operands[0].shape;
  if (axis < 0 || axis >= first.rank()) refuse(s, "dimension {} is outside of the operands", axis);
  for (const auto& operand : s.operands) {
    if (operand.dtype != s.operands[0].dtype || operand.shape.rank() != first.rank()) refuse(s, "operands have one dtype and rank");
    for (int64_t i = 0; i < first.rank(); ++i)
      if (i != axis && operand.shape[i] != first[i]) refuse(s, "operands differ outside of dimension {}", axis);
    total = bounded(s, total + operand.shape[axis], "the joined extent");
  }
  Ints to = first.extents();
  to[static_cast<size_t>(axis)] = total;
  return {{s.operands[0].dtype, to}};
}

std::vector<Type> reversed(const Signature& s) {
  require_axes(s, s.attributes.ints("dimensions"), s.operands[0].shape.rank(), "dimensions");
  return {s.operands[0]};
}

namespace {
void require_starts(const Signature& s, size_t first) {
  if (s.operands.size() != first + static_cast<size_t>(s.operands[0].shape.rank())) refuse(s, "takes one start per axis");
  for (size_t i = first; i < s.operands.size(); ++i)
    if (s.operands[i].shape.rank() != 0 || !is_integer(s.operands[i].dtype)) refuse(s, "starts are integer scalars");
}
}  // namespace

std::vector<Type> dynamically_sliced(const Signature& s) {
  require_starts(s, 1);
  const Ints& sizes = ints(s, "sizes", s.operands[0].shape.rank());
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] < 0 || sizes[i] > s.operands[0].shape[static_cast<int64_t>(i)]) refuse(s, "sizes {} do not fit", to_string(sizes));
  return {{s.operands[0].dtype, sizes}};
}

std::vector<Type> dynamically_updated(const Signature& s) {
  require_starts(s, 2);
  if (s.operands[1].dtype != s.operands[0].dtype || s.operands[1].shape.rank() != s.operands[0].shape.rank())
    refuse(s, "update does not fit");
  for (int64_t i = 0; i < s.operands[0].shape.rank(); ++i)
    if (s.operands[1].shape[i] > s.operands[0].shape[i]) refuse(s, "update does not fit");
  return {s.operands[0]};
}

namespace {

// The extents of `indices` without the index vector, and that vector's length.
std::pair<Ints, int64_t> split_indices(const Signature& s, const Shape& indices) {
  int64_t vector = s.attributes.integer("index_vector_dim"), length = 1;
  if (vector < 0 || vector > indices.rank()) refuse(s, "index_vector_dim {} is outside of the indices", vector);
  Ints batch;
  for (int64_t i = 0; i < indices.rank(); ++i) (i == vector ? length : batch.emplace_back()) = indices[i];
  return {batch, length};
}

void require_batching(const Signature& s, const Ints& operand_dims, const Ints& index_dims, const Shape& operand, const Shape& indices) {
  require_axes(s, operand_dims, operand.rank(), "operand batching dims");
  require_axes(s, index_dims, indices.rank(), "index batching dims");
  if (operand_dims.size() != index_dims.size()) refuse(s, "batching dims differ in number");
  for (size_t i = 0; i < operand_dims.size(); ++i)
    if (operand[operand_dims[i]] != indices[index_dims[i]] || index_dims[i] == s.attributes.integer("index_vector_dim"))
      refuse(s, "batching dims do not fit");
}

// Axes named by two lists may not meet: a start on a batching axis would leave the operand.
void require_apart(const Signature& s, const Ints& a, const Ints& b, std::string_view what) {
  for (int64_t axis : a)
    if (includes(b, axis)) refuse(s, "axis {} is named twice by {}", axis, what);
}

void require_sorted(const Signature& s, const Ints& axes, std::string_view what) {
  if (!std::is_sorted(axes.begin(), axes.end())) refuse(s, "{} {} are not in order", what, to_string(axes));
}

}  // namespace

std::vector<Type> gathered(const Signature& s) {
  const Shape &operand = s.operands[0].shape, &indices = s.operands[1].shape;
  if (!is_integer(s.operands[1].dtype)) refuse(s, "indices are integers");
  const Ints &offset = s.attributes.ints("offset_dims"), &collapsed = s.attributes.ints("collapsed_slice_dims"),
             &batching = s.attributes.ints("operand_batching_dims"), &map = s.attributes.ints("start_index_map"),
             &sizes = ints(s, "slice_sizes", operand.rank());
  auto [batch, length] = split_indices(s, indices);
  require_axes(s, collapsed, operand.rank(), "collapsed_slice_dims");
  require_axes(s, map, operand.rank(), "start_index_map");
  require_batching(s, batching, s.attributes.ints("start_indices_batching_dims"), operand, indices);
  require_apart(s, collapsed, batching, "collapsed_slice_dims and operand_batching_dims");
  require_apart(s, map, batching, "start_index_map and operand_batching_dims");
  if (static_cast<int64_t>(map.size()) != length) refuse(s, "start_index_map has {} entries, the index vector {}", map.size(), length);
  Ints window;
  for (int64_t i = 0; i < operand.rank(); ++i) {
    int64_t size = sizes[static_cast<size_t>(i)];
    if (size < 0 || size > operand[i]) refuse(s, "slice_sizes {} do not fit", to_string(sizes));
    bool dropped = includes(collapsed, i) || includes(batching, i);
    if (dropped && size != 1) refuse(s, "collapsed and batching dims have slices of 1");
    if (!dropped) window.push_back(size);
  }
  int64_t rank = static_cast<int64_t>(batch.size() + window.size());
  require_axes(s, offset, rank, "offset_dims");
  require_sorted(s, offset, "offset_dims");
  if (offset.size() != window.size()) refuse(s, "offset_dims has {} entries, the slice {} axes", offset.size(), window.size());
  Ints out;
  size_t b = 0, w = 0;
  for (int64_t i = 0; i < rank; ++i) out.push_back(includes(offset, i) ? window[w++] : batch[b++]);
  return {{s.operands[0].dtype, out}};
}

std::vector<Type> scattered(const Signature& s) {
  const Shape &operand = s.operands[0].shape, &indices = s.operands[1].shape, &updates = s.operands[2].shape;
  require_kind(s, {"replace", "add", "max", "min", "multiply"});
  if (!is_integer(s.operands[1].dtype) || s.operands[2].dtype != s.operands[0].dtype) refuse(s, "dtypes do not fit");
  const Ints &window = s.attributes.ints("update_window_dims"), &inserted = s.attributes.ints("inserted_window_dims"),
             &batching = s.attributes.ints("input_batching_dims"), &map = s.attributes.ints("scatter_dims_to_operand_dims");
  auto [batch, length] = split_indices(s, indices);
  require_axes(s, window, updates.rank(), "update_window_dims");
  require_axes(s, inserted, operand.rank(), "inserted_window_dims");
  require_axes(s, map, operand.rank(), "scatter_dims_to_operand_dims");
  require_batching(s, batching, s.attributes.ints("scatter_indices_batching_dims"), operand, indices);
  require_sorted(s, window, "update_window_dims");
  require_apart(s, inserted, batching, "inserted_window_dims and input_batching_dims");
  require_apart(s, map, batching, "scatter_dims_to_operand_dims and input_batching_dims");
  if (static_cast<int64_t>(map.size()) != length ||
      window.size() + inserted.size() + batching.size() != static_cast<size_t>(operand.rank()) ||
      updates.rank() != static_cast<int64_t>(batch.size() + window.size()))
    refuse(s, "the dims do not add up");
  size_t b = 0;
  int64_t axis = 0;
  for (int64_t i = 0; i < updates.rank(); ++i) {
    if (!includes(window, i)) {
      if (updates[i] != batch[b++]) refuse(s, "updates do not match the indices");
      continue;
    }
    while (includes(inserted, axis) || includes(batching, axis)) ++axis;
    if (updates[i] > operand[axis++]) refuse(s, "an update window is larger than the operand");
  }
  return {s.operands[0]};
}

std::vector<Type> sorted(const Signature& s) {
  int64_t axis = s.attributes.integer("dimension");
  if (axis < 0 || axis >= s.operands[0].shape.rank()) refuse(s, "dimension {} is outside of the operands", axis);
  for (const auto& operand : s.operands)
    if (!(operand.shape == s.operands[0].shape)) refuse(s, "operands have one shape");
  return {s.operands.begin(), s.operands.end()};
}

std::vector<Type> randomized(const Signature& s) {
  const Shape& keys = s.operands[0].shape;
  if (s.operands[0].dtype != DType::u64 || keys.rank() < 1 || (keys[keys.rank() - 1] != 2 && keys[keys.rank() - 1] != 3))
    refuse(s, "takes keys u64[..., 2] or u64[..., 3]");
  Ints to(keys.begin(), keys.end() - 1);
  for (int64_t extent : s.attributes.ints("shape")) to.push_back(extent);
  for (int64_t extent : to)
    if (extent < 0) refuse(s, "shape {} has a negative extent", to_string(to));
  return {{DType::u32, to}};
}

std::vector<Type> summed_by_all(const Signature& s) {
  const int64_t replicas = s.attributes.integer("replicas");
  if (replicas < 1 || replicas > (1 << 20)) refuse(s, "replicas {} are out of range", replicas);
  for (const Type& operand : s.operands)
    if (operand.dtype != s.operands[0].dtype || operand.dtype == DType::boolean) refuse(s, "operands are numbers of one dtype");
  return {s.operands.begin(), s.operands.end()};
}

std::vector<Type> reduced(const Signature& s) {
  require_kind(s, {"add", "multiply", "max", "min", "and", "or"});
  const Ints& dimensions = s.attributes.ints("dimensions");
  require_axes(s, dimensions, s.operands[0].shape.rank(), "dimensions");
  bool logical = s.attributes.text("kind") == "and" || s.attributes.text("kind") == "or";
  if (logical && s.operands[0].dtype != DType::boolean) refuse(s, "and, or take bool");
  Ints to;
  for (int64_t i = 0; i < s.operands[0].shape.rank(); ++i)
    if (!includes(dimensions, i)) to.push_back(s.operands[0].shape[i]);
  return {{s.operands[0].dtype, to}};
}

std::vector<Type> windowed(const Signature& s) {
  require_kind(s, {"add", "multiply", "max", "min"});
  const Shape& from = s.operands[0].shape;
  const Ints &window = ints(s, "window", from.rank()), &strides = ints(s, "strides", from.rank()),
             &base = ints(s, "base_dilation", from.rank()), &dilation = ints(s, "window_dilation", from.rank()),
             &low = ints(s, "low", from.rank()), &high = ints(s, "high", from.rank());
  Ints to;
  for (size_t i = 0; i < window.size(); ++i) {
    if (window[i] < 1) refuse(s, "window {} is not positive", to_string(window));
    int64_t extent = dilated(s, from[static_cast<int64_t>(i)], base[i]) + bounded(s, low[i], "padding") + bounded(s, high[i], "padding");
    to.push_back(positions(s, extent, dilated(s, window[i], dilation[i]), strides[i]));
  }
  return {{s.operands[0].dtype, to}};
}

std::vector<Type> selected_and_scattered(const Signature& s) {
  require_kind(s, {"max", "min"});
  const Type expected = windowed({s.op, s.operands.subspan(0, 1), s.attributes, nullptr, nullptr})[0];
  if (!is_float(expected.dtype) || !(s.operands[1] == expected)) refuse(s, "takes floats, and a value for each window");
  return {s.operands[0]};
}

std::vector<Type> dotted(const Signature& s) {
  const Shape &lhs = s.operands[0].shape, &rhs = s.operands[1].shape;
  if (s.operands[0].dtype != s.operands[1].dtype) refuse(s, "operands have one dtype");
  const Ints &lb = s.attributes.ints("lhs_batch"), &rb = s.attributes.ints("rhs_batch"), &lc = s.attributes.ints("lhs_contracting"),
             &rc = s.attributes.ints("rhs_contracting");
  Ints l = lb, r = rb;
  l.insert(l.end(), lc.begin(), lc.end());
  r.insert(r.end(), rc.begin(), rc.end());
  require_axes(s, l, lhs.rank(), "lhs axes");
  require_axes(s, r, rhs.rank(), "rhs axes");
  if (lb.size() != rb.size() || lc.size() != rc.size()) refuse(s, "axes differ in number");
  for (size_t i = 0; i < l.size(); ++i)
    if (lhs[l[i]] != rhs[r[i]]) refuse(s, "axes {} and {} differ in extent", to_string(l), to_string(r));
  Ints to;
  for (int64_t axis : lb) to.push_back(lhs[axis]);
  for (int64_t i = 0; i < lhs.rank(); ++i)
    if (!includes(l, i)) to.push_back(lhs[i]);
  for (int64_t i = 0; i < rhs.rank(); ++i)
    if (!includes(r, i)) to.push_back(rhs[i]);
  return {{s.operands[0].dtype, to}};
}

std::vector<Type> convolved(const Signature& s) {
  const Shape &input = s.operands[0].shape, &kernel = s.operands[1].shape;
  if (s.operands[0].dtype != s.operands[1].dtype || input.rank() != kernel.rank() || input.rank() < 3)
    refuse(s, "takes [n, spatial..., c] and [spatial..., c / groups, o] of one dtype");
  int64_t spatial = input.rank() - 2, groups = s.attributes.integer("groups");
  int64_t channels = input[input.rank() - 1], features = kernel[kernel.rank() - 1];
  if (groups < 1 || channels % groups != 0 || features % groups != 0 || kernel[spatial] != channels / groups)
    refuse(s, "{} channels, {} groups, {} features do not fit", channels, groups, features);
  const Ints &strides = ints(s, "strides", spatial), &low = ints(s, "low", spatial), &high = ints(s, "high", spatial),
             &lhs = ints(s, "lhs_dilation", spatial), &rhs = ints(s, "rhs_dilation", spatial);
  Ints to{input[0]};
  for (int64_t i = 0; i < spatial; ++i) {
    auto at = static_cast<size_t>(i);
    if (kernel[i] < 1) refuse(s, "the kernel is empty");
    int64_t extent = dilated(s, input[i + 1], lhs[at]) + bounded(s, low[at], "padding") + bounded(s, high[at], "padding");
    to.push_back(positions(s, extent, dilated(s, kernel[i], rhs[at]), strides[at]));
  }
  to.push_back(features);
  return {{s.operands[0].dtype, to}};
}

std::vector<Type> scanned(const Signature& s) {
  if (s.body == nullptr) refuse(s, "needs a body");
  int64_t carries = s.attributes.integer("carries"), slices = s.attributes.integer("slices"), length = s.attributes.integer("length");
  auto count = static_cast<int64_t>(s.operands.size());
  auto parameters = s.body->parameters(Graph::Role::input);
  if (carries < 0 || slices < 0 || length < 0 || carries > count || slices > count - carries ||
      static_cast<int64_t>(parameters.size()) != count || static_cast<int64_t>(s.body->outputs().size()) < carries)
    refuse(s, "{} carries and {} slices do not fit a body of {} parameters", carries, slices, parameters.size());
  if (s.body->parameters(Graph::Role::weight).size() + s.body->parameters(Graph::Role::state).size() + s.body->updates().size() != 0)
    refuse(s, "a body has inputs and constants only");
  for (int64_t i = 0; i < count; ++i) {
    const Type& operand = s.operands[static_cast<size_t>(i)];
    Type expected = operand;
    if (i >= carries && i < carries + slices) {
      if (operand.shape.rank() < 1 || operand.shape[0] != length) refuse(s, "slices have {} steps along axis 0", length);
      expected.shape = Ints(operand.shape.begin() + 1, operand.shape.end());
    }
    const Type& parameter = s.body->type(parameters[static_cast<size_t>(i)]->results[0]);
    if (!(parameter == expected)) refuse(s, "body parameter {} is {}, expected {}", i, to_string(parameter), to_string(expected));
  }
  std::vector<Type> out;
  for (size_t i = 0; i < s.body->outputs().size(); ++i) {
    Type type = s.body->type(s.body->outputs()[i].value);
    if (static_cast<int64_t>(i) < carries) {
      if (!(type == s.operands[i])) refuse(s, "carry {} becomes {}", i, to_string(type));
    } else {
      Ints extents = type.shape.extents();
      extents.insert(extents.begin(), length);
      type.shape = extents;
    }
    out.push_back(type);
  }
  return out;
}

}  // namespace tutti::type_rules
