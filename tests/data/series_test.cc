// Series from CSV text: columns, order, gaps, ids, and what is refused.
#include "tutti/data/series.h"

#include "tests/hostile.h"
#include "tests/scratch.h"
#include "tutti/base/error.h"

namespace tutti {
namespace {

SeriesTable table_of(const std::string& text, const SeriesColumns& columns = {"y"}) {
  auto bytes = std::as_bytes(std::span(text));
  return read_series(memory_source({bytes.begin(), bytes.end()}), "x.csv", columns);
}

std::string refusal_of_table(const std::string& text, const SeriesColumns& columns = {"y"}) {
  return message_of<InvalidArgument>([&] { table_of(text, columns); });
}

using Numbers = std::vector<double>;

TEST(series, rows_are_put_in_order_and_times_go_on) {
  SeriesTable table = table_of("month,y\n2020-03,3\n2020-01,1\n2020-02,2\n");
  ASSERT_EQ(table.series.size(), 1u);
  EXPECT_EQ(table.series[0].target, (Numbers{1, 2, 3}));
  EXPECT_EQ(table.time(table.series[0], 0), "2020-01");
  EXPECT_EQ(table.time(table.series[0], 3), "2020-04");
  EXPECT_EQ(table.columns.time, "month");
  EXPECT_TRUE(table.warnings.empty());
}

TEST(series, gaps_and_missing_values_are_interpolated_and_counted) {
  SeriesTable table = table_of(
      "t,y\n2021-01-01,1\n2021-01-02,NA\n2021-01-03,3\n2021-01-06,9\n2021-01-07,10\n2021-01-08,11\n2021-01-09,12\n", {"y", {}, "t"});
  EXPECT_EQ(table.series[0].target, (Numbers{1, 2, 3, 5, 7, 9, 10, 11, 12}));
  EXPECT_EQ(table.series[0].made_up, (std::vector<bool>{false, true, false, true, true, false, false, false, false}));
  ASSERT_EQ(table.warnings.size(), 1u);
  EXPECT_PRED2(contains, table.warnings[0], "3 of 9 values of 'y' are missing (2 have no row) and are interpolated");
}

TEST(series, every_way_to_write_nothing) {
  EXPECT_EQ(
      table_of("t,y\n1,1\n2,\n3,3\n4,na\n5,5\n6,N/A\n7,7\n8,null\n9,9\n10,NaN\n11,11\n12,None\n13,13\n", {"y", {}, "t"}).series[0].target,
      (Numbers{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}));
  EXPECT_EQ(
      table_of("t,y\n1,1\n2,#N/A\n3,3\n4,<NA>\n5,5\n6,.\n7,7\n8,-\n9,9\n10,?\n11,11\n12,-nan\n13,13\n", {"y", {}, "t"}).series[0].target,
      (Numbers{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}));
  EXPECT_EQ(table_of("t,y\n1,1\n2,..\n3,3\n4,:\n5,5\n6,--\n7,7\n8,n.a.\n9,9\n10,\\N\n11,11\n12,-1.#IND\n13,13\n", {"y", {}, "t"})
                .series[0]
                .target,
            (Numbers{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}));
  EXPECT_EQ(table_of("date,y\n2020-01-01,1\n,\n2020-01-02,2\n,\n,\n").series[0].target, (Numbers{1, 2}));  // rows of a spreadsheet's end
  EXPECT_PRED2(contains, refusal_of_table("date,y\n2020-01-01,1\n,2\n"), "line 3: is not a time");
}

TEST(series, semicolons_and_decimal_commas) {
  const SeriesTable table = table_of("date;y;x\n2020-01-01;1,5;3\n2020-01-02;;4,25\n2020-01-03;2;NA\n", {"y", {"x"}});
  EXPECT_EQ(table.series[0].target, (Numbers{1.5, 1.75, 2}));
  EXPECT_EQ(table.series[0].features[0], (Numbers{3, 4.25, 4.25}));
  EXPECT_EQ(table_of("sep=;\r\ndate;y\r\n2020-01-01;1,5\r\n2020-01-02;2\r\n").series[0].target, (Numbers{1.5, 2}));
}

TEST(series, it_goes_from_the_first_to_the_last_known_target) {
  SeriesTable table = table_of("t,y,x\n1,,5\n2,2,6\n3,3,\n4,,8\n5,,9\n", {"y", {"x"}, "t"});
  EXPECT_EQ(table.series[0].target, (Numbers{2, 3}));
  EXPECT_EQ(table.time(table.series[0], 0), "2");
  EXPECT_EQ(table.series[0].features[0], (Numbers{6, 7, 8, 9}));  // two of them after the end
}

TEST(series, edges_of_features_take_the_nearest_value) {
  EXPECT_EQ(table_of("t,y,x\n1,1,\n2,2,5\n3,3,6\n4,4,\n", {"y", {"x"}, "t"}).series[0].features[0], (Numbers{5, 5, 6, 6}));
}

TEST(series, ids_make_series_of_their_own) {
  SeriesTable table = table_of("shop,day,y\nb,2020-01-01,1\na,2020-01-05,7\nb,2020-01-02,2\na,2020-01-06,8\n", {"y", {}, "", "shop"});
  ASSERT_EQ(table.series.size(), 2u);
  EXPECT_EQ(table.series[0].id, "b");
  EXPECT_EQ(table.series[1].target, (Numbers{7, 8}));
  EXPECT_EQ(table.time(table.series[1], 2), "2020-01-07");
}

TEST(series, the_time_column_is_found) {
  EXPECT_EQ(table_of("y,Date\n1,2020-01-01\n2,2020-01-02\n").columns.time, "Date");
  EXPECT_EQ(table_of("y,other,when\n1,5,2020-01-01\n2,6,2020-01-02\n").columns.time, "when");
  EXPECT_EQ(table_of("year,month,y,date\n2020,1,1,2020-01-01\n2020,1,2,2020-01-02\n").columns.time, "date");
  EXPECT_EQ(table_of("month,y,on\n1,1,2020-01-01\n1,2,2020-01-02\n").columns.time, "on");
  EXPECT_EQ(table_of("step,y,year\n1,1,2020\n2,2,2021\n").columns.time, "year");
  EXPECT_PRED2(contains, refusal_of_table("y,a\n1,5\n2,6\n"),
               "no column is named as a time (date, time, month, ...) or holds dates; hint: --time COLUMN");
}

TEST(series, what_is_wrong_is_named) {
  EXPECT_PRED2(contains, refusal_of_table("month,sales\n2020-01,1\n", {"sale"}),
               "there is no column 'sale' (--target) (did you mean 'sales'?); the columns are 'month', 'sales'");
  EXPECT_PRED2(contains, refusal_of_table("month|y\n2020-01|1\n"), "the columns are 'month|y'; hint: fields are separated by commas");
  EXPECT_PRED2(contains, refusal_of_table("month,y,y\n2020-01,1,2\n"), "2 columns are named 'y'");
  EXPECT_PRED2(contains, refusal_of_table("month,y\n2020-01,1\n2020-02,2\n2020-01,3\n"),
               "lines 2 and 4 have the same time; hint: --id COLUMN");
  EXPECT_PRED2(contains, refusal_of_table("2020-01,1\n2020-02,2\n"), "the columns are '2020-01', '1'; hint: the first line gives");
  EXPECT_PRED2(contains, refusal_of_table(",month,\n1,2020-01,1\n"), "there is no column 'y' (--target); the columns are");
  EXPECT_PRED2(contains, refusal_of_table("Sales of all shops\nmonth,y\n2020-01,1\n"),
               "line 2 has 2 fields; the rows before it have 1; hint: nothing stands above the header");
  EXPECT_PRED2(contains, refusal_of_table("month,y\n2020-01,\"1,000\"\n"), "got '1,000'; hint: a number has digits");
  EXPECT_PRED2(contains, refusal_of_table("month,y\n2020-01,1\n2020-02,two\n"),
               "line 3, column 2 ('y'): is not a finite number; got 'two'");
  EXPECT_PRED2(contains, refusal_of_table("month,y\n2020-01,1\n2020-02,inf\n"), "is not a finite number; got 'inf'");
  EXPECT_PRED2(contains, refusal_of_table("month,y\n2020-01,\n2020-02,NA\n"), "every 'y' is missing");
  EXPECT_PRED2(contains, refusal_of_table("month,y\n"), "has a header and no rows");
  EXPECT_PRED2(contains, refusal_of_table("month,y,x\n2020-01,1,1\n2020-02,2,1\n", {"y", {"x", "x"}}), "'x' is given twice");
  EXPECT_PRED2(contains, refusal_of_table("month,y\n2020-01,1\n2020-02,2\n", {"y", {}, "y"}), "'y' is the time and cannot be target");
  EXPECT_PRED2(contains, refusal_of_table("id,month,y\na,2020-01,1\n,2020-02,2\n", {"y", {}, "", "id"}),
               "line 3, column 1 ('id'): is empty");
}

TEST(series, more_than_half_made_up_is_refused_before_anything_is_allocated) {
  EXPECT_PRED2(contains, refusal_of_table("t,y\n0,1\n1,2\n1000000000000000,3\n", {"y", {}, "t"}),
               "'y' has 3 values where steps of 1 times");
}

TEST(series, half_is_enough) {
  EXPECT_EQ(table_of("t,y\n1,1\n2,\n3,\n4,\n5,5\n6,6\n", {"y", {}, "t"}).series[0].target, (Numbers{1, 2, 3, 4, 5, 6}));
  EXPECT_PRED2(contains, refusal_of_table("t,y\n1,1\n2,\n3,\n4,\n5,5\n", {"y", {}, "t"}), "'y' has 2 values");
  EXPECT_PRED2(contains, refusal_of_table("t,y,x\n1,1,1\n2,2,\n9000000,,3\n", {"y", {"x"}, "t"}), "'x' has 2 values");
}

TEST(series, damaged_files_are_read_or_refused) {
  Outcomes outcomes;
  MemoryLimit limit;
  for (const std::string good :
       {"id,when,y,x\na,2020-01-31T10:00:00.5+01:00,1,2\na,2020-02-29T10:00:00.5+01:00,,\na,2020-03-31T10:00:00.5+01:00,3,4\nb,2020-01-"
        "31T10:00:00.5+01:00,5,6\n",
        "id,when,y,x\n1,31/01/2020,1,2\n1,01/02/2020,NA,null\n1,02/02/2020,3,4\n2,03/02/2020,,7\n2,02/02/2020,1,8\n",
        "id,time,y,x\n1,1580000000,1,2\n1,1580003600,2,3\n1,1580007200,3,4\n1,1580010800,,5\n"}) {
    auto bytes = std::as_bytes(std::span(good));
    table_of(good, {"y", {"x"}, "", "id"});
    for_each_damage({bytes.begin(), bytes.end()}, 400, [&](const Bytes& bad, const std::string& what) {
      expect_contained(outcomes, what, [&] {
        SeriesTable table = read_series(memory_source(bad), "x.csv", {"y", {"x"}, "", "id"});
        for (const Series& series : table.series) table.time(series, series.length() + 100);
      });
    });
  }
  EXPECT_GT(outcomes.accepted, 50);
  EXPECT_GT(outcomes.refused, 50);
}

}  // namespace
}  // namespace tutti
