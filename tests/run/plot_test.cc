// The marks of axes, and text that is safe in markup.
#include "tutti/run/plot.h"

#include <cmath>

#include "tests/scratch.h"
#include "tutti/run/plot_axis.h"

namespace tutti {
namespace {

std::vector<std::string> labels(const std::vector<Tick>& ticks) {
  std::vector<std::string> out;
  for (const Tick& tick : ticks) out.push_back(tick.label);
  return out;
}

using Labels = std::vector<std::string>;

TEST(plot, values_get_round_marks) {
  EXPECT_EQ(labels(value_axis({104, 622}, 6).ticks), (Labels{"0", "200", "400", "600"}));
  EXPECT_EQ(labels(value_axis({0.31, 0.36}, 6).ticks), (Labels{"0.31", "0.32", "0.33", "0.34", "0.35", "0.36"}));
  EXPECT_EQ(labels(value_axis({-1, 1}, 4).ticks), (Labels{"−1", "0", "1"}));
  EXPECT_EQ(labels(value_axis({-1.2e6, 2.4e6}, 4).ticks), (Labels{"−1 M", "0", "1 M", "2 M"}));
  EXPECT_EQ(labels(value_axis({150000, 450000}, 4).ticks), (Labels{"200 k", "300 k", "400 k"}));
  EXPECT_EQ(labels(value_axis({0.8e300, 1.2e300}, 3).ticks), (Labels{"8e299", "1e300", "1.2e300"}));
  EXPECT_EQ(labels(value_axis({-1e28, 1e28}, 3).ticks), (Labels{"\u22121e28", "0", "1e28"}));
  EXPECT_EQ(value_axis({104, 622}, 6).base, "");
  const ValueAxis far = value_axis({999'999'999, 1'000'000'001}, 4);
  EXPECT_EQ(labels(far.ticks), (Labels{"\u22121", "0", "+1"}));
  EXPECT_EQ(far.base, "1,000,000,000");
  EXPECT_EQ(value_axis({1e18, 1e18 + 1e10}, 4).base, "1e+18");
}

TEST(plot, odd_values_leave_an_axis) {
  for (const std::vector<double>& values :
       {std::vector<double>{}, {5}, {0, 0}, {NAN, INFINITY}, {-1e308, 1e308}, {1e-300, 2e-300}, {1e18, 1e18 + 128}}) {
    ValueAxis axis = value_axis(values, 5);
    EXPECT_LT(axis.low, axis.high);
    EXPECT_LE(axis.ticks.size(), 11u);
    for (double value : values)
      EXPECT_TRUE(!std::isfinite(value) || std::abs(value) > 1e300 || (value >= axis.low && value <= axis.high)) << value;
  }
}

TEST(plot, times_get_marks_where_a_period_begins) {
  auto marks = [](const std::string& text, int64_t steps, int most) {
    auto bytes = std::as_bytes(std::span(text));
    SeriesTable table = read_series(memory_source({bytes.begin(), bytes.end()}), "x.csv", {"y", {}, "t"});
    return labels(time_ticks(table, table.series[0], 0, steps, most));
  };
  EXPECT_EQ(marks("t,y\n1949-01,1\n1949-02,2\n", 144, 9), (Labels{"1950", "1952", "1954", "1956", "1958", "1960"}));
  EXPECT_EQ(marks("t,y\n2019-11,1\n2019-12,2\n", 8, 8), (Labels{"Nov 2019", "Dec", "Jan 2020", "Feb", "Mar", "Apr", "May", "Jun"}));
  EXPECT_EQ(marks("t,y\n2019-12-30,1\n2019-12-31,2\n", 4, 4), (Labels{"Dec 30, 2019", "Dec 31", "Jan 1, 2020", "Jan 2"}));
  EXPECT_EQ(marks("t,y\n2020-01-01T20:00,1\n2020-01-01T21:00,2\n", 12, 4), (Labels{"Jan 1, 21:00", "Jan 2", "03:00", "06:00"}));
  EXPECT_EQ(marks("t,y\n3,1\n4,2\n", 30, 6), (Labels{"5", "10", "15", "20", "25", "30"}));
}

TEST(plot, text_is_escaped) {
  EXPECT_EQ(markup_text("<a href=\"x\">&'</a>"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;&lt;/a&gt;");
  EXPECT_EQ(markup_text(std::string("\x01\xff", 2)), "\\x01\\xff");
}

}  // namespace
}  // namespace tutti
