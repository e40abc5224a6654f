#include "tests/transform/before_after.h"

namespace tutti {
namespace {

// Shorthand: the lines of a graph of x: f32[2, 3] (and others) to its one output %y.
std::string with_x(std::string_view lines) {
  return "graph { %x = parameter {role = \"input\", name = \"x\"} : f32[2, 3]\n %z = parameter {role = \"input\", name = \"z\"} : f32[1, "
         "3]\n"
         " %v = parameter {role = \"input\", name = \"v\"} : f32[3]\n" +
         std::string(lines) + "}";
}

Graph simplify_and_clean(const Graph& graph) { return remove_dead(simplify(graph)); }

void expect_simpler(std::string_view before, std::string_view after) {
  expect_after(simplify_and_clean, with_x(before), with_x(after));
  expect_exact(simplify_and_clean, with_x(before));
}

void expect_stays(std::string_view lines) { expect_simpler(lines, lines); }

// x and the number c, spread to x's shape as %c.
std::string with_number(std::string_view number, std::string_view line) {
  return "%n = constant <" + std::string(number) + "> : f32[] %c = broadcast_in_dim(%n) {shape = [2, 3], dimensions = []} " +
         std::string(line) + " return %y \"y\"";
}

TEST(Simplify, neutral_elements_go_where_no_zero_changes_its_sign) {
  constexpr std::string_view nothing = "return %x \"y\"";
  expect_simpler(with_number("-0", "%y = add(%x, %c)"), nothing);
  expect_simpler(with_number("-0", "%y = add(%c, %x)"), nothing);
  expect_simpler(with_number("0", "%y = subtract(%x, %c)"), nothing);
  expect_simpler(with_number("1", "%y = multiply(%c, %x)"), nothing);
  expect_simpler(with_number("1", "%y = divide(%x, %c)"), nothing);
  expect_simpler(with_number("1", "%y = power(%x, %c)"), nothing);
  expect_simpler(with_number("-inf", "%y = maximum(%x, %c)"), nothing);
  expect_simpler(with_number("inf", "%y = minimum(%c, %x)"), nothing);
  expect_stays(with_number("0", "%y = add(%x, %c)"));
  expect_stays(with_number("-0", "%y = subtract(%x, %c)"));
  expect_stays(with_number("0", "%y = multiply(%x, %c)"));
  expect_stays(with_number("0", "%y = subtract(%c, %x)"));
  expect_stays(with_number("1", "%y = divide(%c, %x)"));
  expect_stays(with_number("inf", "%y = maximum(%x, %c)"));
}

TEST(Simplify, integers_have_one_zero) {
  expect_after(simplify_and_clean, R"(graph { %x = parameter {role = "input", name = "x"} : i32[] %0 = constant <0> : i32[]
    %y = add(%x, %0) return %y "y" })",
               R"(graph { %x = parameter {role = "input", name = "x"} : i32[] return %x "y" })");
}

TEST(Simplify, powers_of_two_divide_as_multiplications) {
  expect_simpler(with_number("4", "%y = divide(%x, %c)"), with_number("0.25", "%y = multiply(%x, %c)"));
  expect_simpler(with_number("-0.5", "%y = divide(%x, %c)"), with_number("-2", "%y = multiply(%x, %c)"));
  expect_stays(with_number("3", "%y = divide(%x, %c)"));
  expect_stays(with_number("0", "%y = divide(%x, %c)"));
  expect_stays(with_number("inf", "%y = divide(%x, %c)"));
  expect_stays(with_number("nan", "%y = divide(%x, %c)"));
  expect_stays(with_number("1.7014118e+38", "%y = divide(%x, %c)"));  // 2^127: its inverse is no normal number
}

TEST(Simplify, powers_become_products_and_roots) {
  expect_simpler(with_number("2", "%y = power(%x, %c)"), "%y = multiply(%x, %x) return %y \"y\"");
  expect_stays(with_number("0.5", "%y = power(%x, %c)"));  // of -0 and -inf another result than sqrt
  expect_stays(with_number("3", "%y = power(%x, %c)"));
  expect_simpler(with_number("0.5", "%a = abs(%x) %y = power(%a, %c)"), "%a = abs(%x) %y = sqrt(%a) return %y \"y\"");
  expect_simpler(with_number("-0.5", "%a = multiply(%x, %x) %y = power(%a, %c)"), "%a = multiply(%x, %x) %y = rsqrt(%a) return %y \"y\"");
}

TEST(Simplify, double_negations_go) {
  expect_simpler("%a = negate(%x) %y = negate(%a) return %y \"y\"", "return %x \"y\"");
  expect_simpler("%a = is_finite(%x) %b = not(%a) %y = not(%b) return %y \"y\"", "%y = is_finite(%x) return %y \"y\"");
}

TEST(Simplify, known_predicates_decide) {
  constexpr std::string_view spread = "%p = broadcast_in_dim(%t) {shape = [2, 3], dimensions = []}";
  auto with = [&](std::string_view known, std::string_view line) {
    return "%t = constant <" + std::string(known) + "> : bool[] " + std::string(spread) + std::string(line);
  };
  expect_simpler(with("true", "%n = tanh(%x) %y = select(%p, %x, %n) return %y \"y\""), "return %x \"y\"");
  expect_simpler(with("false", "%n = tanh(%x) %y = select(%p, %x, %n) return %y \"y\""), "%n = tanh(%x) return %n \"y\"");
  expect_simpler(with("true", "%f = is_finite(%x) %y = and(%f, %p) return %y \"y\""), "%f = is_finite(%x) return %f \"y\"");
  expect_simpler(with("false", "%f = is_finite(%x) %y = or(%p, %f) return %y \"y\""), "%f = is_finite(%x) return %f \"y\"");
  expect_simpler(with("true", "%f = is_finite(%x) %y = or(%p, %f) return %y \"y\""), with("true", " return %p \"y\""));
  expect_simpler("%f = is_finite(%x) %g = not(%f) %n = negate(%x) %y = select(%g, %x, %n) return %y \"y\"",
                 "%f = is_finite(%x) %n = negate(%x) %y = select(%f, %n, %x) return %y \"y\"");
}

TEST(Simplify, conversions_that_lose_nothing_go) {
  expect_simpler("%a = convert(%x) {dtype = \"f32\"} return %a \"y\"", "return %x \"y\"");
  expect_simpler("%a = convert(%x) {dtype = \"f64\"} %b = convert(%a) {dtype = \"f32\"} return %b \"y\"", "return %x \"y\"");
  expect_stays("%a = convert(%x) {dtype = \"f16\"} %b = convert(%a) {dtype = \"f32\"} return %b \"y\"");
}

TEST(Simplify, elementwise_ops_work_before_broadcasts) {
  expect_simpler(R"(%a = broadcast_in_dim(%v) {shape = [2, 3], dimensions = [1]} %n = constant <7> : f32[]
      %b = broadcast_in_dim(%n) {shape = [2, 3], dimensions = []} %y = add(%a, %b) return %y "y")",
                 R"(%n = constant <7> : f32[] %b = broadcast_in_dim(%n) {shape = [3], dimensions = []}
      %a = add(%v, %b) %y = broadcast_in_dim(%a) {shape = [2, 3], dimensions = [1]} return %y "y")");
  expect_stays(R"(%u = reduce(%x) {kind = "max", dimensions = [1]} %a = broadcast_in_dim(%v) {shape = [2, 3], dimensions = [1]}
      %b = broadcast_in_dim(%u) {shape = [2, 3], dimensions = [0]} %y = add(%a, %b) return %y "y")");
}

TEST(Simplify, elementwise_ops_work_before_reshapes) {
  // What a mean over rows does with its kept axis.
  expect_simpler(R"(%s = reduce(%x) {kind = "add", dimensions = [1]} %a = reshape(%s) {shape = [2, 1]} %n = constant <3> : f32[]
      %c = broadcast_in_dim(%n) {shape = [2, 1], dimensions = []} %d = divide(%a, %c) %b = broadcast_in_dim(%d) {shape = [2, 3], dimensions = [0, 1]}
      return %b "y")",
                 R"(%s = reduce(%x) {kind = "add", dimensions = [1]} %n = constant <3> : f32[]
      %c = broadcast_in_dim(%n) {shape = [2], dimensions = []} %d = divide(%s, %c) %b = broadcast_in_dim(%d) {shape = [2, 3], dimensions = [0]}
      return %b "y")");
  expect_stays(R"(%a = reshape(%x) {shape = [3, 2]} %w = slice(%v) {start = [0], limit = [2], strides = [1]}
      %b = broadcast_in_dim(%w) {shape = [3, 2], dimensions = [1]} %c = add(%a, %b) return %c "y")");
}

TEST(Simplify, elementwise_ops_work_before_transposes) {
  // What channels_first makes of a bias and an activation between two convolutions.
  expect_simpler(R"(%a = transpose(%x) {permutation = [1, 0]} %b = broadcast_in_dim(%v) {shape = [3, 2], dimensions = [0]} %c = add(%a, %b)
      %d = tanh(%c) %e = transpose(%d) {permutation = [1, 0]} return %e "y")",
                 R"(%b = broadcast_in_dim(%v) {shape = [2, 3], dimensions = [1]} %c = add(%x, %b) %d = tanh(%c) return %d "y")");
  expect_simpler(
      R"(%a = transpose(%x) {permutation = [1, 0]} %n = negate(%x) %b = transpose(%n) {permutation = [1, 0]} %c = add(%a, %b) return %c "y")",
      R"(%n = negate(%x) %c = add(%x, %n) %d = transpose(%c) {permutation = [1, 0]} return %d "y")");
  // Another value would have to be transposed instead.
  expect_stays(R"(%a = transpose(%x) {permutation = [1, 0]} %b = reshape(%x) {shape = [3, 2]} %c = add(%a, %b) return %c "y")");
  expect_simpler(R"(%a = transpose(%x) {permutation = [1, 0]} %b = reduce(%a) {kind = "add", dimensions = [1]} return %b "y")",
                 R"(%b = reduce(%x) {kind = "add", dimensions = [0]} return %b "y")");
  expect_stays(R"(%a = transpose(%x) {permutation = [1, 0]} %b = reduce(%a) {kind = "add", dimensions = [0, 1]} return %b "y")");
  expect_simpler(R"(%a = transpose(%x) {permutation = [1, 0]} %b = reduce(%a) {kind = "max", dimensions = [0, 1]} return %b "y")",
                 R"(%b = reduce(%x) {kind = "max", dimensions = [0, 1]} return %b "y")");
}

TEST(Simplify, pads_pools_slices_and_concatenations_work_before_transposes) {
  constexpr std::string_view turned = "%t = transpose(%x) {permutation = [1, 0]} ";
  auto expect_turned = [&](const std::string& before, const std::string& after) {
    expect_simpler(std::string(turned) + before + " return %y \"y\"", after + " %r = transpose(%y) {permutation = [1, 0]} return %r \"y\"");
  };
  expect_turned("%n = constant <7> : f32[] %y = pad(%t, %n) {low = [1, 0], high = [2, 3], interior = [0, 1]}",
                "%n = constant <7> : f32[] %y = pad(%x, %n) {low = [0, 1], high = [3, 2], interior = [1, 0]}");
  expect_turned("%y = slice(%t) {start = [1, 0], limit = [3, 2], strides = [1, 1]}",
                "%y = slice(%x) {start = [0, 1], limit = [2, 3], strides = [1, 1]}");
  expect_turned("%n = tanh(%x) %u = transpose(%n) {permutation = [1, 0]} %y = concatenate(%t, %u) {dimension = 0}",
                "%n = tanh(%x) %y = concatenate(%x, %n) {dimension = 1}");
  auto window = [](std::string_view of, std::string_view kind, std::string_view size, std::string_view strides) {
    return "%y = reduce_window(" + std::string(of) + ") {kind = \"" + std::string(kind) + "\", window = " + std::string(size) +
           ", strides = " + std::string(strides) + ", base_dilation = [1, 1], window_dilation = [1, 1], low = [0, 0], high = [0, 0]}";
  };
  expect_turned(window("%t", "add", "[2, 1]", "[1, 1]"), window("%x", "add", "[1, 2]", "[1, 1]"));
  expect_stays(std::string(turned) + window("%t", "add", "[2, 2]", "[1, 1]") + " return %y \"y\"");  // would add up in another order
}

TEST(Simplify, windows_of_one_element_are_slices) {
  auto window = [](std::string_view kind, std::string_view size, std::string_view strides, std::string_view high = "[0, 0]") {
    return "%y = reduce_window(%x) {kind = \"" + std::string(kind) + "\", window = " + std::string(size) +
           ", strides = " + std::string(strides) +
           ", base_dilation = [1, 1], window_dilation = [1, 1], low = [0, 0], high = " + std::string(high) + "} return %y \"y\"";
  };
  expect_simpler(window("max", "[1, 1]", "[1, 1]"), "return %x \"y\"");
  expect_simpler(window("max", "[1, 1]", "[1, 2]"), R"(%y = slice(%x) {start = [0, 0], limit = [2, 3], strides = [1, 2]} return %y "y")");
  expect_simpler(window("add", "[1, 1]", "[1, 1]"), with_number("0", "%y = add(%x, %c)"));
  expect_stays(window("max", "[1, 2]", "[1, 1]"));
  expect_stays(window("max", "[1, 1]", "[1, 1]", "[0, 1]"));
}

TEST(Simplify, constants_stand_on_the_right) {
  expect_simpler(with_number("3", "%y = multiply(%c, %x)"), with_number("3", "%y = multiply(%x, %c)"));
  expect_simpler(R"(%k = constant <1, 2, 3> : f32[3] %y = add(%k, %v) return %y "y")",
                 R"(%k = constant <1, 2, 3> : f32[3] %y = add(%v, %k) return %y "y")");
  expect_stays(with_number("3", "%y = subtract(%c, %x)"));
}

TEST(Simplify, a_bound_that_holds_is_not_made_again) {
  expect_simpler(with_number("0", "%a = maximum(%x, %c) %y = maximum(%a, %c)"), with_number("0", "%y = maximum(%x, %c)"));
  expect_simpler(with_number("6", "%a = minimum(%x, %c) %y = minimum(%c, %a)"), with_number("6", "%y = minimum(%x, %c)"));
  expect_stays(with_number("6", "%a = minimum(%x, %c) %y = maximum(%a, %c)"));
}

TEST(Simplify, constants_look_the_same_at_any_batch_size) {
  expect_simpler(R"(%k = constant <1, 2, 3> : f32[1, 3] %y = maximum(%z, %k) return %y "y")",
                 R"(%k = constant <1, 2, 3> : f32[1, 3] %s = reshape(%k) {shape = [3]}
                    %b = broadcast_in_dim(%s) {shape = [1, 3], dimensions = [1]} %y = maximum(%z, %b) return %y "y")");
}

TEST(Simplify, transposes_join_or_become_reshapes) {
  expect_simpler("%a = transpose(%x) {permutation = [1, 0]} %b = transpose(%a) {permutation = [1, 0]} return %b \"y\"", "return %x \"y\"");
  expect_simpler("%a = transpose(%z) {permutation = [1, 0]} return %a \"y\"", "%a = reshape(%z) {shape = [3, 1]} return %a \"y\"");
  expect_simpler(
      R"(%a = broadcast_in_dim(%v) {shape = [4, 3, 2], dimensions = [1]} %b = transpose(%a) {permutation = [2, 0, 1]} return %b "y")",
      R"(%a = broadcast_in_dim(%v) {shape = [2, 4, 3], dimensions = [2]} return %a "y")");
  expect_stays("%a = transpose(%x) {permutation = [1, 0]} return %a \"y\"");
}

TEST(Simplify, reshapes_and_broadcasts_join) {
  expect_simpler("%a = reshape(%x) {shape = [6]} %b = reshape(%a) {shape = [3, 2]} return %b \"y\"",
                 "%b = reshape(%x) {shape = [3, 2]} return %b \"y\"");
  expect_simpler("%a = reshape(%x) {shape = [6]} %b = reshape(%a) {shape = [2, 3]} return %b \"y\"", "return %x \"y\"");
  expect_simpler(R"(%a = broadcast_in_dim(%v) {shape = [2, 3], dimensions = [1]}
      %b = broadcast_in_dim(%a) {shape = [2, 4, 3], dimensions = [0, 2]} return %b "y")",
                 R"(%b = broadcast_in_dim(%v) {shape = [2, 4, 3], dimensions = [2]} return %b "y")");
  // A sum over rows goes back from its own shape.
  expect_simpler(
      R"(%s = reduce(%x) {kind = "max", dimensions = [1]} %a = reshape(%s) {shape = [2, 1]}
      %b = broadcast_in_dim(%a) {shape = [2, 3], dimensions = [0, 1]} return %b "y")",
      R"(%s = reduce(%x) {kind = "max", dimensions = [1]} %b = broadcast_in_dim(%s) {shape = [2, 3], dimensions = [0]} return %b "y")");
  expect_simpler(R"(%a = broadcast_in_dim(%v) {shape = [2, 3], dimensions = [1]} %b = reshape(%a) {shape = [2, 1, 3]} return %b "y")",
                 R"(%b = broadcast_in_dim(%v) {shape = [2, 1, 3], dimensions = [2]} return %b "y")");
  expect_simpler(R"(%a = broadcast_in_dim(%x) {shape = [2, 1, 3], dimensions = [0, 2]} return %a "y")",
                 R"(%a = reshape(%x) {shape = [2, 1, 3]} return %a "y")");
}

TEST(Simplify, slices_join_and_see_through_concatenations) {
  expect_simpler("%a = slice(%x) {start = [0, 0], limit = [2, 3], strides = [1, 1]} return %a \"y\"", "return %x \"y\"");
  expect_simpler(R"(%f = reshape(%x) {shape = [6]} %a = slice(%f) {start = [1], limit = [6], strides = [2]}
      %b = slice(%a) {start = [1], limit = [3], strides = [1]} return %b "y")",
                 R"(%f = reshape(%x) {shape = [6]} %b = slice(%f) {start = [3], limit = [6], strides = [2]} return %b "y")");
  expect_simpler(
      R"(%c = concatenate(%x, %z) {dimension = 0} %a = slice(%c) {start = [2, 1], limit = [3, 3], strides = [1, 1]} return %a "y")",
      R"(%a = slice(%z) {start = [0, 1], limit = [1, 3], strides = [1, 1]} return %a "y")");
  expect_stays(
      R"(%c = concatenate(%x, %z) {dimension = 0} %a = slice(%c) {start = [1, 0], limit = [3, 3], strides = [1, 1]} return %a "y")");
  expect_simpler(R"(%i = constant <9> : i32[] %j = constant <-2> : i32[] %a = dynamic_slice(%x, %i, %j) {sizes = [1, 2]} return %a "y")",
                 R"(%a = slice(%x) {start = [1, 0], limit = [2, 2], strides = [1, 1]} return %a "y")");
}

TEST(Simplify, concatenations_pads_and_reversals_of_nothing_go) {
  expect_simpler("%a = concatenate(%x) {dimension = 0} return %a \"y\"", "return %x \"y\"");
  expect_simpler(
      R"(%e = slice(%z) {start = [0, 0], limit = [0, 3], strides = [1, 1]} %a = concatenate(%e, %x, %z) {dimension = 0} return %a "y")",
      R"(%a = concatenate(%x, %z) {dimension = 0} return %a "y")");
  expect_simpler(R"(%n = constant <1> : f32[] %a = pad(%x, %n) {low = [0, 0], high = [0, 0], interior = [0, 0]} return %a "y")",
                 "return %x \"y\"");
  expect_simpler(R"(%n = constant <1> : f32[] %a = pad(%x, %n) {low = [1, 0], high = [0, 2], interior = [0, 0]}
      %b = pad(%a, %n) {low = [2, 1], high = [0, 0], interior = [0, 0]} return %b "y")",
                 R"(%n = constant <1> : f32[] %b = pad(%x, %n) {low = [3, 1], high = [0, 2], interior = [0, 0]} return %b "y")");
  expect_stays(R"(%n = constant <0> : f32[] %m = constant <-0> : f32[] %a = pad(%x, %n) {low = [1, 0], high = [0, 2], interior = [0, 0]}
      %b = pad(%a, %m) {low = [2, 1], high = [0, 0], interior = [0, 0]} return %b "y")");
  expect_simpler("%a = reverse(%z) {dimensions = [0]} return %a \"y\"", "return %z \"y\"");
  expect_simpler("%a = reverse(%x) {dimensions = [1]} %b = reverse(%a) {dimensions = [1]} return %b \"y\"", "return %x \"y\"");
}

TEST(Simplify, sums_of_neighbours_are_put_side_by_side) {
  const std::string zero = "%0 = constant <-0> : f32[] ", one = "%0 = constant <0> : f32[] ";
  const std::string front = "%a = pad(%x, %0) {low = [0, 0], high = [2, 0], interior = [0, 0]} ";
  const std::string behind = "%b = pad(%x, %0) {low = [2, 0], high = [0, 0], interior = [0, 0]} %c = add(%b, %a) return %c \"y\"";
  expect_simpler(zero + front + behind, "%c = concatenate(%x, %x) {dimension = 0} return %c \"y\"");
  expect_unchanged(simplify, with_x(one + front + behind));
  expect_unchanged(simplify, with_x(zero + front +
                                    "%b = pad(%x, %0) {low = [1, 0], high = [1, 0], interior = [0, 0]} %c = add(%b, %a) return %c \"y\""));
}

TEST(Simplify, axes_of_extent_one_are_not_reduced) {
  expect_simpler("%a = reduce(%z) {kind = \"max\", dimensions = [0]} return %a \"y\"", "%a = reshape(%z) {shape = [3]} return %a \"y\"");
  // A sum begins with 0, so that of -0 is 0.
  expect_simpler("%a = reduce(%z) {kind = \"add\", dimensions = [0]} return %a \"y\"",
                 R"(%n = constant <0> : f32[] %b = broadcast_in_dim(%n) {shape = [1, 3], dimensions = []}
                    %c = add(%z, %b) %a = reshape(%c) {shape = [3]} return %a "y")");
  expect_simpler("%a = reduce(%z) {kind = \"add\", dimensions = [0, 1]} return %a \"y\"",
                 "%a = reshape(%z) {shape = [3]} %b = reduce(%a) {kind = \"add\", dimensions = [0]} return %b \"y\"");
}

TEST(Simplify, products_read_a_transposed_right_side_where_it_lies) {
  expect_simpler(
      R"(%t = transpose(%x) {permutation = [1, 0]}
      %y = dot_general(%x, %t) {lhs_batch = [], rhs_batch = [], lhs_contracting = [1], rhs_contracting = [0]} return %y "y")",
      R"(%y = dot_general(%x, %x) {lhs_batch = [], rhs_batch = [], lhs_contracting = [1], rhs_contracting = [1]} return %y "y")");
}

// x: [5, 2, 4, 3], k: [2, 3, 7], m: [3, 7], b: [5, 4, 3, 7]
std::string with_deep_x(std::string_view lines) {
  return R"(graph { %x = parameter {role = "input", name = "x"} : f32[5, 2, 4, 3] %k = parameter {role = "input", name = "k"} : f32[2, 3, 7]
    %m = parameter {role = "input", name = "m"} : f32[3, 7] %b = parameter {role = "input", name = "b"} : f32[5, 4, 3, 7] )" +
         std::string(lines) + R"( return %y "y" })";
}

TEST(Simplify, products_keep_transposes_that_make_rows_of_the_left_side) {
  for (std::string_view lines :
       {R"(%t = transpose(%x) {permutation = [0, 2, 1, 3]}
           %y = dot_general(%t, %k) {lhs_batch = [], rhs_batch = [], lhs_contracting = [2, 3], rhs_contracting = [0, 1]})",
        R"(%t = transpose(%x) {permutation = [0, 2, 1, 3]}
           %y = dot_general(%t, %m) {lhs_batch = [], rhs_batch = [], lhs_contracting = [3], rhs_contracting = [0]})",
        R"(%y = dot_general(%x, %b) {lhs_batch = [0, 2], rhs_batch = [0, 1], lhs_contracting = [3], rhs_contracting = [2]})"}) {
    expect_unchanged(simplify, with_deep_x(lines));
  }
}

TEST(Simplify, products_get_a_left_side_of_rows) {
  // A contraction of a middle axis, as resizing has.
  const std::string before = with_deep_x(R"(%n = parameter {role = "input", name = "n"} : f32[4, 6]
    %y = dot_general(%x, %n) {lhs_batch = [], rhs_batch = [], lhs_contracting = [2], rhs_contracting = [0]})");
  expect_after(simplify, before, with_deep_x(R"(%n = parameter {role = "input", name = "n"} : f32[4, 6]
    %t = transpose(%x) {permutation = [0, 1, 3, 2]}
    %y = dot_general(%t, %n) {lhs_batch = [], rhs_batch = [], lhs_contracting = [3], rhs_contracting = [0]})"));
  expect_exact(simplify, before);
  const std::string torn = with_deep_x(R"(
    %y = dot_general(%m, %b) {lhs_batch = [], rhs_batch = [], lhs_contracting = [1, 0], rhs_contracting = [3, 2]})");
  expect_exact(simplify, torn);
}

TEST(Simplify, works_inside_of_scans) {
  expect_after(simplify_and_clean, in_a_scan("%b = tanh(%0) %d = negate(%b) %c = negate(%d)"), in_a_scan("%c = tanh(%0)"));
}

}  // namespace
}  // namespace tutti
