// tf.linalg, and products of the bare tf namespace.
#include <algorithm>

#include "tutti/graph/compose.h"
#include "tutti/keras/layers/tensorflow/arguments.h"

namespace tutti::keras::tf {

namespace {

Outputs matrix_transpose(Call& c) { return swapaxes(tensor(c), -1, -2); }
// a, b, transpose_a, transpose_b, adjoint_a, adjoint_b
Outputs matrix_product(Call& c) {
  auto [a, b] = pair(c, "b");
  if (a.rank() < 2 || b.rank() < 2) c.config.invalid("takes matrices; got {} and {}", to_string(a.shape()), to_string(b.shape()));
  if (flag(c, "transpose_a", false) || flag(c, "adjoint_a", false)) a = swapaxes(a, -1, -2);
  if (flag(c, "transpose_b", false) || flag(c, "adjoint_b", false)) b = swapaxes(b, -1, -2);
  return matmul(a, b);
}
Outputs matrix_vector(Call& c) {
  auto [a, b] = pair(c, "b");
  if (flag(c, "transpose_a", false)) a = swapaxes(a, -1, -2);
  return squeeze(matmul(a, expand_dims(b, {-1})), {-1});
}
// a, b, axes
Outputs tensordot(Call& c) {
  auto [a, b] = pair(c, "b");
  const Argument& given = argument(c, "axes");
  Ints left, right;
  if (given.kind == Argument::Kind::constant) {
    int64_t count = integers(c, given)[0];
    if (count < 0 || count > std::min(a.rank(), b.rank())) c.config.invalid("'axes' is {}, more than the ranks", count);
    for (int64_t i = 0; i < count; ++i) {
      left.push_back(a.rank() - count + i);
      right.push_back(i);
    }
  } else {
    if (given.items.size() != 2) c.config.invalid("'axes' has two lists");
    left = integers(c, given.items[0]);
    right = integers(c, given.items[1]);
  }
  for (auto [list, x] : {std::pair{&left, a}, std::pair{&right, b}})
    for (int64_t& each : *list) {
      if (each < -x.rank() || each >= x.rank()) c.config.invalid("'axes' names {}, outside of rank {}", each, x.rank());
      if (each < 0) each += x.rank();
    }
  return dot_general(a, b, {{}, {}, left, right});
}
// input, num_lower, num_upper: what is near the diagonal; -1 is any distance
Outputs band_part(Call& c) {
  Value x = tensor(c);
  if (x.rank() < 2) c.config.invalid("takes matrices; got {}", to_string(x.shape()));
  Type square{DType::i64, {x.extent(-2), x.extent(-1)}};
  Value distance = iota(c.graph, square, 0) - iota(c.graph, square, 1);
  int64_t lower = integer(c, "num_lower"), upper = integer(c, "num_upper");
  Value kept = full(c.graph, {DType::boolean, square.shape}, 1);
  if (lower >= 0) kept = logical_and(kept, compare(distance, static_cast<double>(lower), Direction::LE));
  if (upper >= 0) kept = logical_and(kept, compare(distance, -static_cast<double>(upper), Direction::GE));
  return select(kept, x, full_like(x, 0));
}

Value matrices(Call& c) {
  Value x = tensor(c);
  if (x.rank() < 2) c.config.invalid("takes matrices; got {}", to_string(x.shape()));
  return x;
}
// Of 'k': which diagonal, counted from the main one up.
int64_t one_diagonal(Call& c) {
  const Argument* given = find(c, "k");
  const Ints range = given == nullptr ? Ints{0} : integers(c, *given);
  if (range.empty() || range.front() != range.back()) c.config.unsupported("'k' of several diagonals: {}", to_string(range));
  return range[0];
}
Value diagonal_of(Call& c, Value x, int64_t k) {
  const int64_t rows = x.extent(-2), columns = x.extent(-1);
  Ints places, flat = x.shape().extents();
  for (int64_t i = std::max<int64_t>(-k, 0); i < rows && i + k < columns; ++i) places.push_back(i * columns + i + k);
  if (places.empty()) c.config.invalid("'k' is {}, outside of {}", k, to_string(x.shape()));
  flat.pop_back();
  flat.back() = rows * columns;
  return take(reshape(x, flat), places, -1);
}
// input, k; where bands of several diagonals have padding_value and align
Outputs diagonal_part(Call& c) {
  Value x = matrices(c);
  const int64_t k = one_diagonal(c);
  find(c, "padding_value");
  find(c, "align");
  return diagonal_of(c, x, k);
}
Outputs trace_of(Call& c) { return sum(diagonal_of(c, matrices(c), 0), {-1}); }
Value on_diagonal(Graph& graph, int64_t rows, int64_t columns) {
  const Type square{DType::i64, {rows, columns}};
  return compare(iota(graph, square, 0), iota(graph, square, 1), Direction::EQ);
}
// diagonal -> the square matrices with it; k and sizes as they are by default
Outputs diagonal_matrices(Call& c) {
  Value x = tensor(c);
  if (x.rank() < 1) c.config.invalid("takes diagonals; got a single number");
  Ints extents = x.shape().extents();
  extents.push_back(extents.back());
  return select(on_diagonal(c.graph, extents.back(), extents.back()), broadcast_to(expand_dims(x, {-1}), extents),
                full(c.graph, {x.dtype(), extents}, 0));
}
// input, diagonal, k
Outputs with_diagonal(Call& c) {
  Value x = matrices(c), diagonal = tensor(c, "diagonal", x.dtype());
  if (one_diagonal(c) != 0) c.config.unsupported("'k' other than 0");
  find(c, "align");
  const int64_t rows = x.extent(-2), columns = x.extent(-1);
  if (diagonal.rank() != x.rank() - 1 || diagonal.extent(-1) != std::min(rows, columns))
    c.config.invalid("{} is no diagonal of {}", to_string(diagonal.shape()), to_string(x.shape()));
  return select(on_diagonal(c.graph, rows, columns), broadcast_to(expand_dims(diagonal, {rows <= columns ? -1 : -2}), x.shape().extents()),
                x);
}
// num_rows, num_columns, batch_shape, dtype
Outputs eye(Call& c) {
  const int64_t rows = integer(c, nullptr), columns = integer(c, "num_columns", rows);
  constexpr int64_t most = 1 << 14;
  if (rows < 0 || rows > most || columns < 0 || columns > most) c.config.invalid("a matrix of {} by {}", rows, columns);
  Ints extents;
  if (const Argument* batch = find(c, "batch_shape")) extents = integers(c, *batch);
  extents.insert(extents.end(), {rows, columns});
  return broadcast_to(convert(on_diagonal(c.graph, rows, columns), dtype(c, "dtype", DType::f32)), extents);
}
// a, b: vectors of three
Outputs cross_product(Call& c) {
  auto [a, b] = pair(c, "b");
  if (a.rank() < 1 || a.shape() != b.shape() || a.extent(-1) != 3)
    c.config.invalid("takes vectors of three; got {} and {}", to_string(a.shape()), to_string(b.shape()));
  const Ints next{1, 2, 0}, last{2, 0, 1};
  return take(a, next, -1) * take(b, last, -1) - take(a, last, -1) * take(b, next, -1);
}
// Keras 2 writes the equation and none of the tensors, and fails to open such a file itself.
Outputs without_tensors(Call& c) {
  c.config.unsupported(
      "the file does not hold what tf.einsum is called on, and Keras cannot open it either; hint: build the model with "
      "EinsumDense, Dot or tf.matmul in its place, and load the weights");
}

}  // namespace

std::span<const Function> matrix_functions() {
  static const Function functions[] = {
      {"einsum", without_tensors},        {"eye", eye},
      {"linalg.band_part", band_part},    {"linalg.cross", cross_product},
      {"linalg.diag", diagonal_matrices}, {"linalg.diag_part", diagonal_part},
      {"linalg.einsum", without_tensors}, {"linalg.eye", eye},
      {"linalg.matmul", matrix_product},  {"linalg.matrix_transpose", matrix_transpose},
      {"linalg.matvec", matrix_vector},   {"linalg.set_diag", with_diagonal},
      {"linalg.trace", trace_of},         {"tensordot", tensordot},
  };
  return functions;
}

}  // namespace tutti::keras::tf
