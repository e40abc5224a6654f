#include "tests/transform/before_after.h"

namespace tutti {
namespace {

TEST(RemoveDead, keeps_inputs_and_what_outputs_and_updates_need) {
  expect_after(remove_dead, R"(graph {
    %x = parameter {role = "input", name = "x"} : f32[2]
    %unread = parameter {role = "input", name = "unread"} : f32[2]
    %w = parameter {role = "weight", name = "w"} : f32[2]
    %s = parameter {role = "state", name = "s"} : f32[2]
    %t = parameter {role = "state", name = "t"} : f32[2]
    %dead = add(%x, %w)
    %deader = tanh(%dead)
    %y = tanh(%x)
    %next = negate(%s)
    update %s = %next
    return %y "y"
  })",
               R"(graph {
    %x = parameter {role = "input", name = "x"} : f32[2]
    %unread = parameter {role = "input", name = "unread"} : f32[2]
    %s = parameter {role = "state", name = "s"} : f32[2]
    %y = tanh(%x)
    %next = negate(%s)
    update %s = %next
    return %y "y"
  })");
}

// carry0 feeds carry1, which is read outside; carry2 and the stacked value are for nobody.
constexpr std::string_view loop_text = R"(graph {
    %x = parameter {role = "input", name = "x"} : f32[3, 2]
    %u = parameter {role = "input", name = "u"} : f32[3, 2]
    %a = parameter {role = "input", name = "a"} : f32[2]
    %w = parameter {role = "input", name = "w"} : f32[2]
    %p, %q, %r, %stack = scan(%a, %a, %a, %x, %u, %w, %a) {carries = 3, slices = 2, length = 3, reverse = 0} {
      %0 = parameter {role = "input", name = "carry0"} : f32[2]
      %1 = parameter {role = "input", name = "carry1"} : f32[2]
      %2 = parameter {role = "input", name = "carry2"} : f32[2]
      %3 = parameter {role = "input", name = "slice0"} : f32[2]
      %4 = parameter {role = "input", name = "slice1"} : f32[2]
      %5 = parameter {role = "input", name = "whole0"} : f32[2]
      %6 = parameter {role = "input", name = "whole1"} : f32[2]
      %7 = add(%0, %3)
      %8 = add(%1, %0)
      %9 = add(%2, %4)
      %10 = multiply(%9, %6)
      return %7 "carry0", %8 "carry1", %9 "carry2", %10 "stacked0"
    }
    return %q "q"
  })";

TEST(RemoveDead, cuts_carries_slices_whole_and_stacked_values_of_scans) {
  expect_after(remove_dead, loop_text, R"(graph {
    %x = parameter {role = "input", name = "x"} : f32[3, 2]
    %u = parameter {role = "input", name = "u"} : f32[3, 2]
    %a = parameter {role = "input", name = "a"} : f32[2]
    %w = parameter {role = "input", name = "w"} : f32[2]
    %p, %q = scan(%a, %a, %x) {carries = 2, slices = 1, length = 3, reverse = 0} {
      %0 = parameter {role = "input", name = "carry0"} : f32[2]
      %1 = parameter {role = "input", name = "carry1"} : f32[2]
      %2 = parameter {role = "input", name = "slice0"} : f32[2]
      %3 = add(%0, %2)
      %4 = add(%1, %0)
      return %3 "carry0", %4 "carry1"
    }
    return %q "q"
  })");
  expect_exact(remove_dead, loop_text);
}

TEST(RemoveDead, keeps_a_carry_that_its_body_does_not_read) {
  expect_exact(remove_dead, R"(graph {
    %x = parameter {role = "input", name = "x"} : f32[3, 2]
    %a = parameter {role = "input", name = "a"} : f32[2]
    %p = scan(%a, %x) {carries = 1, slices = 1, length = 3, reverse = 0} {
      %0 = parameter {role = "input", name = "carry0"} : f32[2]
      %1 = parameter {role = "input", name = "slice0"} : f32[2]
      %2 = tanh(%1)
      return %2 "carry0"
    }
    return %p "p"
  })");
}

}  // namespace
}  // namespace tutti
