#include "tutti/device/cpu/gemm/batched_matmul.h"
#include "tutti/device/cpu/gemm/matmul.h"

#include "tests/device/cpu_contraction.h"

namespace tutti::cpu {
namespace {

struct Case {
  int64_t rows, depth, columns;
};

// Each element of c is what finish(i, j, sum) makes of the sum over p of product(i, j, p), and a margin beside each row is as it was, 77.
// The tolerance is for sums of the size of their products, of `least` and more.
template <class Product, class Finish>
void expect_sums(const std::vector<float>& c, int64_t c_stride, const Case& shape, double least, const Product& product,
                 const Finish& finish) {
  const auto& [m, k, n] = shape;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < c_stride; ++j) {
      const float actual = c[static_cast<size_t>(i * c_stride + j)];
      if (j >= n) {
        ASSERT_EQ(actual, 77.0f) << "written beside row " << i;
        continue;
      }
      double sum = 0, magnitude = least;
      for (int64_t p = 0; p < k; ++p) {
        const double x = product(i, j, p);
        sum += x;
        magnitude += std::abs(x);
      }
      expect_near(actual, finish(i, j, sum), magnitude, "c", i * n + j);
    }
}

// C and its neighbourhood: a margin beside each row must stay as it was.
void check(const Case& shape, const Epilogue& kind, bool with_bias, bool with_residual, bool transposed, int threads) {
  const int64_t m = shape.rows, k = shape.depth, n = shape.columns;
  SCOPED_TRACE(testing::Message() << m << "x" << k << "x" << n << (transposed ? " transposed" : "") << ", " << threads << " threads");
  const int64_t a_stride = k + 3, c_stride = n + 5, residual_stride = n + 2;
  const auto a = normal_floats(m * a_stride, 1), b = normal_floats(k * n, 2), bias = normal_floats(n, 3),
             residual = normal_floats(m * residual_stride, 4);
  std::vector<float> c(static_cast<size_t>(m * c_stride), 77.0f);
  const PackedMatrix packed({b.data(), k, n, transposed ? 1 : n, transposed ? k : 1});
  Epilogue epilogue = kind;
  if (with_bias) epilogue.bias = bias.data();
  if (with_residual) epilogue.residual = residual.data();
  epilogue.residual_stride = residual_stride;
  matmul(m, a.data(), a_stride, packed.panels(), epilogue, c.data(), c_stride, threads);
  const auto product = [&](int64_t i, int64_t j, int64_t p) {
    return double{a[static_cast<size_t>(i * a_stride + p)]} * b[static_cast<size_t>(transposed ? j * k + p : p * n + j)];
  };
  expect_sums(c, c_stride, shape, 0, product, [&](int64_t i, int64_t j, double sum) {
    if (with_bias) sum += bias[static_cast<size_t>(j)];
    if (with_residual) sum += residual[static_cast<size_t>(i * residual_stride + j)];
    return expected_activation(sum, epilogue);
  });
}

TEST(cpu_matmul, agrees_with_plain_loops_at_all_edges) {
  const Epilogue none;
  for (int64_t m : {1, 2, 3, 5, 7, 13, 25}) {
    for (int64_t k : {0, 1, 3, 8, 37}) {
      for (int64_t n : {1, 7, 8, 9, 16, 17, 24, 31, 40, 57, 64, 100}) check({m, k, n}, none, k % 2 == 0, false, n % 2 == 0, 1);
    }
  }
}

// Bit by bit: what a sample gives does not depend on the others of its batch, nor on threads. On every width from 1 to 17 vectors of 8.
TEST(cpu_matmul, a_row_gives_the_same_alone_and_among_others) {
  for (int64_t k : {1, 8, 61, 900}) {
    for (int64_t n = 1; n <= 136; n = n < 40 ? n + 3 : n + 8) {
      const auto a = normal_floats(29 * k, 1), b = normal_floats(k * n, 2), bias = normal_floats(n, 3), residual = normal_floats(29 * n, 4);
      for (LeftRows left : {LeftRows::any, LeftRows::several, LeftRows::several_even}) {
        if (left == LeftRows::several_even && k % 2 != 0) continue;
        const PackedMatrix packed({b.data(), k, n, n, 1}, left);
        Epilogue epilogue = relu(bias.data());
        epilogue.residual_stride = n;
        std::vector<float> alone(static_cast<size_t>(29 * n)), together(alone.size());
        for (int64_t row = 0; row < 29; ++row) {
          epilogue.residual = residual.data() + row * n;
          matmul(1, a.data() + row * k, k, packed.panels(), epilogue, alone.data() + row * n, n, 1);
        }
        epilogue.residual = residual.data();
        for (int64_t rows : {2, 5, 29}) {
          for (int threads : {1, 2, 3}) {
            std::fill(together.begin(), together.end(), 77.0f);
            matmul(rows, a.data(), k, packed.panels(), epilogue, together.data(), n, threads);
            ASSERT_TRUE(std::equal(alone.begin(), alone.begin() + rows * n, together.begin()))
                << rows << "x" << k << "x" << n << ", " << threads << " threads";
          }
        }
      }
    }
  }
}

TEST(cpu_matmul, blocks_of_depth_and_rows_join) {
  for (const Case& shape : {Case{61, 385, 33}, Case{29, 2000, 49}, Case{300, 130, 20}, Case{1, 1500, 300}, Case{130, 769, 8}}) {
    for (int threads : {1, 2, 3}) check(shape, relu(), true, true, false, threads);
  }
}

TEST(cpu_matmul, empty_products) {
  check({0, 5, 5}, {}, true, false, false, 2);
  check({5, 0, 5}, {}, true, true, false, 2);
  check({5, 5, 0}, {}, false, false, false, 1);
}

TEST(cpu_matmul, epilogues) {
  Epilogue clip = relu(), leaky;
  clip.low = -1, clip.high = 2;
  leaky.activation = Activation::leaky_relu, leaky.alpha = 0.3f;
  for (const Epilogue& epilogue : {relu(), clip, leaky}) {
    for (const Case& shape : {Case{1, 20, 30}, Case{7, 20, 30}}) {
      for (int flags = 0; flags < 4; ++flags) check(shape, epilogue, flags & 1, flags & 2, false, 1);
    }
  }
}

TEST(cpu_matmul, activations_after_the_registers) {
  for (Activation activation : {Activation::elu, Activation::gelu, Activation::gelu_by_tanh, Activation::hard_sigmoid,
                                Activation::hard_swish, Activation::sigmoid, Activation::silu, Activation::tanh}) {
    Epilogue epilogue;
    epilogue.activation = activation;
    epilogue.alpha = 0.7f;
    check({1, 20, 30}, epilogue, true, false, false, 1);
    check({50, 400, 70}, epilogue, true, true, false, 2);
  }
}

TEST(cpu_matmul, nan_and_infinity_survive) {
  Epilogue clip = relu();
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  clip.high = 6;
  for (int64_t rows : {1, 4}) {
    for (const Epilogue& epilogue : {Epilogue(), relu(), clip}) {
      std::vector<float> a(static_cast<size_t>(rows), 1.0f), b = {nan, infinity, -infinity, 2}, c(static_cast<size_t>(rows * 4));
      matmul(rows, a.data(), 1, PackedMatrix({b.data(), 1, 4, 4, 1}).panels(), epilogue, c.data(), 4, 1);
      for (int64_t i = 0; i < rows * 4; ++i) {
        expect_near(c[static_cast<size_t>(i)], expected_activation(b[static_cast<size_t>(i % 4)], epilogue), 1, "c", i);
      }
    }
  }
}

// Both sides where they lie, the left one by rows or by columns: the same bits as of packed ones.
TEST(cpu_matmul, small_products_need_no_packing) {
  const int64_t batch = 3;
  for (int64_t m : {2, 5, 13, 32}) {
    for (int64_t k : {1, 6, 32}) {
      for (int64_t n : {5, 8, 10, 16, 31, 64, 100}) {
        SCOPED_TRACE(testing::Message() << m << "x" << k << "x" << n);
        const auto a = normal_floats(batch * m * k, 1), b = normal_floats(batch * k * n, 2), bias = normal_floats(batch * n, 3),
                   residual = normal_floats(batch * m * n, 4);
        std::vector<float> turned(a.size());
        for (int64_t i = 0; i < batch; ++i)
          for (int64_t row = 0; row < m; ++row)
            for (int64_t p = 0; p < k; ++p)
              turned[static_cast<size_t>((i * k + p) * m + row)] = a[static_cast<size_t>((i * m + row) * k + p)];
        BatchedMatmul by_rows{batch, m, k, n, k, m * k, n, 1, k * n, n, m * n, n}, by_columns = by_rows;
        by_columns.a_stride = 1, by_columns.a_column_stride = m;
        for (int kind = 0; kind < 4; ++kind) {
          Epilogue epilogue = kind == 1 ? relu(bias.data()) : Epilogue();
          if (kind > 1) epilogue.residual = residual.data(), epilogue.residual_stride = n;
          if (kind == 3) epilogue.activation = Activation::gate;
          std::vector<float> want(residual.size()), rows(residual.size()), columns(residual.size());
          Floats packed(by_rows.packed_size());
          by_rows.pack(b.data(), packed.data());
          by_rows.run_packed(a.data(), packed.data(), epilogue, want.data(), 1);
          if (kind == 3) {
            for (size_t i = 0; i < want.size(); ++i) ASSERT_TRUE(residual[i] > 0 || want[i] == 0) << i;
          }
          if (!by_rows.is_near()) continue;  // this machine's vectors have no parts
          by_rows.run(a.data(), b.data(), epilogue, rows.data(), nullptr, 2);
          by_columns.run(turned.data(), b.data(), epilogue, columns.data(), nullptr, 1);
          EXPECT_EQ(rows, want);
          EXPECT_EQ(columns, want);
        }
      }
    }
  }
}

TEST(cpu_matmul, a_few_products_are_divided_between_threads) {
  for (const Case& shape :
       {Case{150, 20, 40}, Case{150, 130, 70}, Case{7, 300, 200}, Case{150, 77, 1}}) {  // near, packed, with few rows, dots
    const auto& [m, k, n] = shape;
    const BatchedMatmul product{2, m, k, n, k, m * k, n, 1, k * n, n, m * n, n};
    const auto a = normal_floats(2 * m * k, 1), b = normal_floats(2 * k * n, 2), residual = normal_floats(2 * m * n, 3);
    Epilogue epilogue;
    epilogue.residual = residual.data(), epilogue.residual_stride = n;
    std::vector<float> want(residual.size()), got(residual.size());
    Floats workspace(product.workspace(4));
    product.run(a.data(), b.data(), epilogue, want.data(), workspace.data(), 1);
    for (int threads : {3, 4}) {
      std::fill(got.begin(), got.end(), 77.0f);
      product.run(a.data(), b.data(), epilogue, got.data(), workspace.data(), threads);
      EXPECT_EQ(got, want) << m << "x" << k << "x" << n << ", " << threads << " threads";
    }
  }
}

TEST(cpu_matmul, batched_products_pack_as_they_go) {
  const int64_t batch = 5, m = 11, k = 13, n = 19;
  const auto a = normal_floats(batch * m * k, 1), b = normal_floats(batch * n * k, 2);
  for (int threads : {1, 2}) {
    std::vector<float> c(static_cast<size_t>(batch * m * n));
    const BatchedMatmul product{batch, m, k, n, k, m * k, 1, k, n * k, n, m * n};  // B transposed
    Floats workspace(product.workspace(threads));
    product.run(a.data(), b.data(), {}, c.data(), workspace.data(), threads);
    for (int64_t i = 0; i < batch * m * n; ++i) {
      const int64_t product_index = i / (m * n), row = i / n % m, column = i % n;
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        sum += double{a[static_cast<size_t>((product_index * m + row) * k + p)]} *
               b[static_cast<size_t>((product_index * n + column) * k + p)];
      }
      expect_near(c[static_cast<size_t>(i)], sum, 20, "c", i);
    }
  }
}

// Three heads of attention on two threads: one of the products is cut.
TEST(cpu_matmul, few_products_are_divided_by_rows) {
  const int64_t k = 24, n = 40;
  for (int64_t batch : {1, 3, 5})
    for (int64_t m : {9, 25, 64})
      for (const bool transposed : {false, true}) {
        const auto a = normal_floats(batch * m * k, 1), b = normal_floats(batch * n * k, 2), bias = normal_floats(n, 3);
        BatchedMatmul product{batch, m, k, n, k, m * k, n, 1, n * k, n, m * n};
        if (transposed) {
          product.b_row_stride = 1;
          product.b_column_stride = k;
        }
        const auto residual = normal_floats(batch * m * n, 4);
        Epilogue epilogue = relu(bias.data());
        epilogue.residual = residual.data();
        epilogue.residual_stride = n;
        const auto run = [&](int threads) {
          std::vector<float> c(static_cast<size_t>(batch * m * n), 77.0f);
          Floats workspace(product.workspace(threads));
          product.run(a.data(), b.data(), epilogue, c.data(), workspace.data(), threads);
          return c;
        };
        const auto alone = run(1);
        for (int threads : {2, 3, 4}) EXPECT_EQ(run(threads), alone) << batch << " of " << m << " rows, " << threads << " threads";
      }
}

// Those too small to be packed as well, and the edges between: B as it is or transposed, with gaps between rows, with and without a bias.
TEST(cpu_matmul, small_batched_products_agree_with_plain_loops) {
  const int64_t batch = 3;
  for (int64_t m : {1, 2, 5, 32})
    for (int64_t k : {1, 2, 5, 16, 32, 33, 64, 65})
      for (int64_t n : {1, 2, 3, 4, 5, 15, 16, 17})
        for (const bool transposed : {false, true})
          for (const bool biased : {false, true}) {
            SCOPED_TRACE(testing::Message() << m << "x" << k << "x" << n << (transposed ? " transposed" : "") << (biased ? " biased" : ""));
            const int64_t a_stride = k + 1, b_stride = (transposed ? k : n) + 2, b_step = (transposed ? n : k) * b_stride,
                          c_stride = n == 1 ? 1 : n + 3;
            const auto a = normal_floats(batch * m * a_stride, 1), b = normal_floats(batch * b_step, 2), bias = normal_floats(n, 3);
            std::vector<float> c(static_cast<size_t>(batch * m * c_stride), 77.0f);
            const BatchedMatmul product{
                batch,  m,        k,           n, a_stride, m * a_stride, transposed ? 1 : b_stride, transposed ? b_stride : 1,
                b_step, c_stride, m * c_stride};
            Floats workspace(product.workspace(1));
            Epilogue epilogue;
            if (biased) epilogue.bias = bias.data();
            product.run(a.data(), b.data(), epilogue, c.data(), workspace.data(), 1);
            const auto products = [&](int64_t i, int64_t j, int64_t p) {
              return double{a[static_cast<size_t>(i * a_stride + p)]} *
                     b[static_cast<size_t>(i / m * b_step + (transposed ? j * b_stride + p : p * b_stride + j))];
            };
            expect_sums(c, c_stride, {batch * m, k, n}, 1, products,
                        [&](int64_t, int64_t j, double sum) { return biased ? sum + bias[static_cast<size_t>(j)] : sum; });
          }
}

// Gradients of a few units: the left side by columns, with gaps between them.
TEST(cpu_matmul, small_sums_over_a_batch_agree_with_plain_loops) {
  const int64_t batch = 3;
  for (int64_t m : {2, 5, 8, 9, 16, 17})
    for (int64_t k : {1, 3, 4, 32, 33})
      for (int64_t n : {1, 2, 3, 4, 5}) {
        SCOPED_TRACE(testing::Message() << m << "x" << k << "x" << n);
        const int64_t a_stride = m + 1, b_stride = n + 2, c_stride = n + 3;
        const auto a = normal_floats(batch * k * a_stride, 1), b = normal_floats(batch * k * b_stride, 2);
        std::vector<float> c(static_cast<size_t>(batch * m * c_stride), 77.0f);
        BatchedMatmul product{batch, m, k, n, 1, k * a_stride, b_stride, 1, k * b_stride, c_stride, m * c_stride};
        product.a_column_stride = a_stride;
        if (!product.is_near()) continue;  // this machine's vectors have no parts
        product.run(a.data(), b.data(), {}, c.data(), nullptr, 2);
        const auto products = [&](int64_t i, int64_t j, int64_t p) {
          const int64_t row = i / m * k + p;
          return double{a[static_cast<size_t>(row * a_stride + i % m)]} * b[static_cast<size_t>(row * b_stride + j)];
        };
        expect_sums(c, c_stride, {batch * m, k, n}, 1, products, [](int64_t, int64_t, double sum) { return sum; });
      }
}

TEST(cpu_matmul, one_row_backwards_is_the_same) {
  for (int64_t n = 1; n < 300; n += 7) {
    const auto a = normal_floats(33, 1), b = normal_floats(33 * n, 2), bias = normal_floats(n, 3), residual = normal_floats(n, 4);
    const PackedMatrix packed({b.data(), 33, n, n, 1});
    Epilogue epilogue = relu(bias.data());
    epilogue.residual = residual.data();
    epilogue.residual_stride = n;
    std::vector<float> forwards(static_cast<size_t>(n), 77.0f), backwards = forwards;
    matmul(1, a.data(), 33, packed.panels(), epilogue, forwards.data(), n, 1);
    for (int threads : {1, 2, 3}) {
      std::fill(backwards.begin(), backwards.end(), 77.0f);
      matmul(1, a.data(), 33, packed.panels(), epilogue, backwards.data(), n, threads, true);
      EXPECT_EQ(forwards, backwards) << n << ", " << threads << " threads";
    }
  }
}

// Bit by bit: two products at once, and one whose sums begin with the other's, whether both stay in the first-level cache or not.
TEST(cpu_matmul, an_added_product_goes_on_with_each_sum) {
  for (int64_t n : {65, 100, 130, 152})
    for (const auto& [k, more_k] : {std::pair<int64_t, int64_t>{1, 37}, {10, 150}, {150, 300}, {900, 3}, {8, 0}})
      for (int64_t rows : {1, 2, 9, 70}) {
        const auto a = normal_floats(rows * k, 1), b = normal_floats(k * n, 2), more_a = normal_floats(rows * more_k, 3),
                   more_b = normal_floats(more_k * n, 4), bias = normal_floats(n, 5);
        const PackedMatrix packed({b.data(), k, n, n, 1}), more({more_b.data(), more_k, n, n, 1});
        std::vector<float> first(static_cast<size_t>(rows * n)), in_turn(first.size()), at_once(first.size());
        Epilogue with_bias, goes_on = relu();
        with_bias.bias = bias.data();
        matmul(rows, a.data(), k, packed.panels(), with_bias, first.data(), n, 1);
        goes_on.residual = first.data(), goes_on.residual_stride = n, goes_on.residual_first = true;
        matmul(rows, more_a.data(), more_k, more.panels(), goes_on, in_turn.data(), n, 1);
        const AddedProduct added{{more_a.data(), nullptr, more_k, rows, 1, nullptr, more_k}, more.panels()};
        for (int threads : {1, 3})
          for (bool backwards : {false, true}) {
            std::fill(at_once.begin(), at_once.end(), 77.0f);
            matmul({a.data(), nullptr, k, rows, 1, nullptr, k}, packed.panels(), relu(bias.data()), at_once.data(), n, threads, backwards,
                   &added);
            ASSERT_EQ(in_turn, at_once) << rows << "x" << k << "+" << more_k << "x" << n << ", " << threads << " threads";
          }
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < n; ++j) {
            double sum = first[static_cast<size_t>(i * n + j)], size = std::fabs(sum);
            for (int64_t p = 0; p < more_k; ++p) {
              const double product = double{more_a[static_cast<size_t>(i * more_k + p)]} * more_b[static_cast<size_t>(p * n + j)];
              sum += product, size += std::fabs(product);
            }
            ASSERT_NEAR(at_once[static_cast<size_t>(i * n + j)], std::max(sum, 0.0), 1e-6 * size) << rows << " " << k << " " << more_k;
          }
      }
}

// As the members of an ensemble are: each product with a bias of its own, packed before the run.
TEST(cpu_matmul, products_that_are_packed_before_give_what_each_gives_alone) {
  constexpr int64_t batch = 5, k = 21;
  for (int64_t n : {2, 17, 40, 64, 130})
    for (int64_t rows : {1, 2, 7}) {
      const auto a = normal_floats(batch * rows * k, 1), b = normal_floats(batch * k * n, 2), bias = normal_floats(batch * n, 3);
      BatchedMatmul product{batch, rows, k, n, k, rows * k, n, 1, k * n, n, rows * n};
      product.bias_step = n;
      const PackedMatrix packed = product.packed(b.data());
      std::vector<float> alone(static_cast<size_t>(batch * rows * n)), together(alone.size());
      for (int64_t i = 0; i < batch; ++i)
        matmul(rows, a.data() + i * rows * k, k, PackedMatrix({b.data() + i * k * n, k, n, n, 1}).panels(), relu(bias.data() + i * n),
               alone.data() + i * rows * n, n, 1);
      for (int threads : {1, 3})
        for (bool backwards : {false, true}) {
          std::fill(together.begin(), together.end(), 77.0f);
          product.run_packed(a.data(), packed, relu(bias.data()), together.data(), threads, backwards);
          EXPECT_EQ(alone, together) << rows << "x" << k << "x" << n << ", " << threads << " threads";
        }
    }
}

}  // namespace
}  // namespace tutti::cpu
