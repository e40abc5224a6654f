#include "tutti/run/monitor.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

// What keras.callbacks.EarlyStopping said of the same numbers: where they differ by min_delta itself, the rounding of float32 decides.
TEST(monitor, an_improvement_by_min_delta_is_judged_as_keras_judges_it) {
  struct Case {
    const char* mode;
    double before, now, min_delta;
    bool improves;
  };
  for (const Case& c : {Case{"max", 0.7, 0.8, 0.1, false}, Case{"max", 0.2, 0.3, 0.1, true}, Case{"max", 0.35, 0.4, 0.05, false},
                        Case{"max", 0.1, 0.15, 0.05, true}, Case{"max", 0.7, 0.81, 0.1, true}, Case{"max", 0.7, 0.79, 0.1, false},
                        Case{"min", 0.3, 0.2, 0.1, false}, Case{"min", 0.8, 0.7, 0.1, false}, Case{"min", 0.4, 0.35, 0.05, false},
                        Case{"min", 0.5, 0.5, 0, false}}) {
    const keras::Named named =
        read_callback(JsonMembers{{"mode", c.mode}, {"min_delta", c.min_delta}}, "early_stopping", "mode min_delta(,)");
    EXPECT_EQ(Monitor(named.config(), 0).improves(c.now, c.before), c.improves) << c.mode << " " << c.before << " " << c.now;
  }
}

}  // namespace
}  // namespace tutti
