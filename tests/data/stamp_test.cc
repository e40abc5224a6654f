// Times as files write them, and the times that come after.
#include "tutti/data/stamp.h"

#include "tests/scratch.h"
#include "tutti/base/error.h"
#include "tutti/data/time_axis.h"

namespace tutti {
namespace {

StampColumn column_of(const std::vector<std::string>& texts) {
  StampReader reader("x.csv: column 't'");
  int64_t line = 2;
  for (const auto& text : texts) reader.add(text, line++);
  return reader.finish();
}

std::string refusal_of(const std::vector<std::string>& texts) {
  return message_of<InvalidArgument>([&] { column_of(texts); });
}

// The axis's name, and the times that follow.
std::vector<std::string> followed(const std::vector<std::string>& texts, int64_t count = 2) {
  StampColumn column = column_of(texts);
  TimeAxis axis(column.format, {column.ticks});
  std::vector<std::string> out{axis.frequency()};
  for (int64_t i = 1; i <= count; ++i) out.push_back(axis.text(axis.ordinal(column.ticks.back()) + i * axis.count()));
  return out;
}

using Texts = std::vector<std::string>;

TEST(stamps, ticks_are_microseconds_since_1970) {
  EXPECT_EQ(column_of({"1970-01-01"}).ticks[0], 0);
  EXPECT_EQ(column_of({"1970-01-02T00:00:01"}).ticks[0], ticks_per_day + ticks_per_second);
  EXPECT_EQ(column_of({"1969-12-31 23:59:59.5"}).ticks[0], -ticks_per_second / 2);
  EXPECT_EQ(column_of({"2000-03-01T00:00:00Z"}).ticks[0], 951868800 * ticks_per_second);
  EXPECT_EQ(column_of({"2000-03-01T01:30:00+01:30"}).ticks[0], 951868800 * ticks_per_second);
  EXPECT_EQ(column_of({"2000-02-29T19:00:00-0500"}).ticks[0], 951868800 * ticks_per_second);
  EXPECT_EQ(column_of({"951868800"}).ticks[0], 951868800 * ticks_per_second);
  EXPECT_EQ(column_of({"951868800123"}).ticks[0], 951868800123 * 1000);
  EXPECT_EQ(column_of({"20000301"}).ticks[0], 951868800 * ticks_per_second);
  EXPECT_EQ(column_of({"7"}).ticks[0], 7);
}

TEST(stamps, every_format_is_written_as_it_was_read) {
  for (const std::string text : {"2020-01-31",
                                 "2020/01/31",
                                 "2020.01.31",
                                 "31.01.2020",
                                 "31/01/2020",
                                 "01/31/2020",
                                 "31-01-2020",
                                 "20200131",
                                 "2020-01",
                                 "2020-Q2",
                                 "2020Q3",
                                 "2020-01-31T10:30",
                                 "2020-01-31T10",
                                 "2020-01-31 09+01:00",
                                 "1/31/2020, 9:30:15 AM",
                                 "2020-031",
                                 "2020-366T10:30",
                                 "2020013109",
                                 "202001310930",
                                 "20200131093015",
                                 "2020-01-31 10:30:15",
                                 "2020-01-31T10:30:15.25",
                                 "2020-01-31T10:30:15.000001Z",
                                 "2020-01-31T10:30:15+05:30",
                                 "2020-01-31 10:30-08:00",
                                 "28-Jan-2021",
                                 "05-MAY-2021",
                                 "5 May 2021",
                                 "28 January 2021",
                                 "28jan2021",
                                 "28/Jan/2021",
                                 "28.Jan.2021",
                                 "Jan 28, 2021",
                                 "September 3, 2021",
                                 "Sep. 3, 2021",
                                 "January 28 2021",
                                 "2021-Jan-28",
                                 "Jan 2021",
                                 "January 2021",
                                 "Jan-2021",
                                 "JAN2021",
                                 "2021 Jan",
                                 "01/2021",
                                 "2021M01",
                                 "2021M1",
                                 "2021 Q1",
                                 "Q1 2021",
                                 "Q4-2021",
                                 "1Q2021",
                                 "2021-W05",
                                 "2020W53",
                                 "2021-W05-7",
                                 "1/31/2021",
                                 "31/1/2021",
                                 "2021-1-31",
                                 "1/31/2021 9:05",
                                 "1/31/2021 12:00:00 AM",
                                 "1/31/2021 11:30 pm",
                                 "31-Jan-2021 01:00PM",
                                 "20210131T10:30",
                                 "20210131T103000Z",
                                 "2021-01-31 1030",
                                 "202101",
                                 "2021-01-31 10:30:00 UTC",
                                 "2021-01-31 10:30:00+00",
                                 "2021-01-31T10:30:00-0330",
                                 "2021-01-31 10:30:00 +01:00",
                                 "1580466615",
                                 "1580466615.0",
                                 "1580466615.25",
                                 "1580466615123",
                                 "1580466615123456",
                                 "1580466615123456000",
                                 "7.0",
                                 "-5",
                                 "1950"}) {
    StampColumn column = column_of({text});
    EXPECT_EQ(column.format.text(column.ticks[0]), text);
  }
}

TEST(stamps, names_of_months_weeks_and_halves_of_the_day) {
  const int64_t day = column_of({"2021-01-28"}).ticks[0];
  for (const char* text : {"28-Jan-2021", "28 JANUARY 2021", "jan 28, 2021", "Jan. 28, 2021", "2021-jan-28", "28Jan2021", "2021-W04-4"})
    EXPECT_EQ(column_of({text}).ticks[0], day) << text;
  EXPECT_EQ(column_of({"2021-W04"}).ticks[0], day - 3 * ticks_per_day);
  EXPECT_EQ(column_of({"2021-W01"}).ticks[0], column_of({"2021-01-04"}).ticks[0]);
  EXPECT_EQ(column_of({"2020-W01"}).ticks[0], column_of({"2019-12-30"}).ticks[0]);
  EXPECT_EQ(column_of({"2020-W53-5"}).ticks[0], column_of({"2021-01-01"}).ticks[0]);
  EXPECT_EQ(column_of({"1/28/2021 12:15 AM"}).ticks[0], day + 15 * 60 * ticks_per_second);
  EXPECT_EQ(column_of({"1/28/2021 12:15 PM"}).ticks[0], day + (12 * 60 + 15) * 60 * ticks_per_second);
  EXPECT_EQ(column_of({"2021-01-28 00:00:00 UTC"}).ticks[0], day);
  EXPECT_EQ(column_of({"1611792000000000000"}).ticks[0], day);
  EXPECT_EQ(column_of({"1611792000.5"}).ticks[0], day + ticks_per_second / 2);
  EXPECT_EQ(column_of({"20210128T001500"}).ticks[0], day + 15 * 60 * ticks_per_second);
  EXPECT_EQ(column_of({" 2021-01-28 "}).ticks[0], day);
  EXPECT_EQ(followed({"202011", "202012"}), (Texts{"monthly", "202101", "202102"}));
  EXPECT_EQ(followed({"202011", "202012", "202013"}), (Texts{"steps of 1", "202014", "202015"}));
  EXPECT_EQ(followed({"28-Nov-2020", "28-Dec-2020", "28-Jan-2021"}), (Texts{"monthly", "28-Feb-2021", "28-Mar-2021"}));
  EXPECT_EQ(followed({"April 2021", "May 2021"}), (Texts{"monthly", "June 2021", "July 2021"}));
  EXPECT_EQ(followed({"May 2021", "June 2021"}), (Texts{"monthly", "July 2021", "August 2021"}));
  EXPECT_EQ(followed({"Q3 2021", "Q4 2021"}), (Texts{"quarterly", "Q1 2022", "Q2 2022"}));
  EXPECT_EQ(followed({"2020-W52", "2020-W53"}), (Texts{"weekly", "2021-W01", "2021-W02"}));
  EXPECT_EQ(followed({"2021-W05", "2021-W09"}), (Texts{"every 4 weeks", "2021-W13", "2021-W17"}));
  EXPECT_EQ(followed({"9/30/2021 11:00:00 PM", "10/1/2021 12:00:00 AM"}),
            (Texts{"hourly", "10/1/2021 1:00:00 AM", "10/1/2021 2:00:00 AM"}));
  EXPECT_EQ(followed({"9/30/2021 11AM", "9/30/2021 12PM"}), (Texts{"hourly", "9/30/2021 1PM", "9/30/2021 2PM"}));
  EXPECT_EQ(followed({"9/30/2021 8 am", "9/30/2021 9 am"}, 1), (Texts{"hourly", "9/30/2021 10 am"}));
  EXPECT_EQ(followed({"9/30/2021 08:00", "9/30/2021 09:00"}, 1), (Texts{"hourly", "9/30/2021 10:00"}));
  EXPECT_EQ(followed({"9/30/2021 07:00", "9/30/2021 08:00"}, 1), (Texts{"hourly", "9/30/2021 09:00"}));
  EXPECT_EQ(followed({"1.0", "2.0"}), (Texts{"steps of 1", "3.0", "4.0"}));
}

TEST(stamps, midnight_may_be_the_end_of_a_day) {
  EXPECT_EQ(column_of({"2020-02-28T24:00"}).ticks, column_of({"2020-02-29T00:00"}).ticks);
  EXPECT_EQ(followed({"28.02.2020 23:00", "28.02.2020 24:00", "29.02.2020 01:00"}, 1), (Texts{"hourly", "29.02.2020 02:00"}));
  EXPECT_EQ(followed({"27.02.2020 24:00", "28.02.2020 12:00"}), (Texts{"every 12 hours", "28.02.2020 24:00", "29.02.2020 12:00"}));
  EXPECT_EQ(followed({"28.02.2020 12:00", "28.02.2020 24:00", "29.02.2020 12:00", "01.03.2020 00:00"}),
            (Texts{"every 12 hours", "01.03.2020 12:00", "02.03.2020 00:00"}));
  EXPECT_EQ(followed({"2020-01-31 24:00", "2020-02-29 24:00"}, 1), (Texts{"monthly", "2020-03-31 24:00"}));
}

TEST(stamps, numbers_are_days_with_a_clock_where_all_of_them_can_be) {
  EXPECT_EQ(followed({"2020022822", "2020022823"}), (Texts{"hourly", "2020022900", "2020022901"}));
  EXPECT_EQ(followed({"202002282345", "202002290000"}, 1), (Texts{"every 15 minutes", "202002290015"}));
  EXPECT_EQ(followed({"20201231235959", "20210101000000"}, 1), (Texts{"every second", "20210101000001"}));
  EXPECT_EQ(followed({"1700000000", "1700003600"}, 1), (Texts{"hourly", "1700007200"}));
  EXPECT_EQ(followed({"1900010100", "1900013700"}, 1), (Texts{"hourly", "1900017300"}));  // no day 37
  EXPECT_EQ(followed({"2020-02-28T23", "2020-02-29T00"}, 1), (Texts{"hourly", "2020-02-29T01"}));
  EXPECT_EQ(followed({"2020-365", "2020-366"}, 1), (Texts{"daily", "2021-001"}));
}

TEST(stamps, the_column_decides_between_day_and_month) {
  const int64_t second_of_january = column_of({"2020-01-02"}).ticks[0], first_of_february = column_of({"2020-02-01"}).ticks[0];
  EXPECT_EQ(column_of({"01/02/2020", "01/31/2020"}).ticks[0], second_of_january);
  EXPECT_EQ(column_of({"01/02/2020", "31/01/2020"}).ticks[0], first_of_february);
  EXPECT_EQ(column_of({"01.02.2020"}).ticks[0], first_of_february);
  EXPECT_PRED2(contains, refusal_of({"01/02/2020", "03/02/2020"}), "line 2: may mean 01/02 as day and month or as month and day");
  EXPECT_PRED2(contains, refusal_of({"13/02/2020", "01/02/2020", "02/13/2020"}), "line 4: has the month first, line 2 the day");
}

TEST(stamps, what_is_no_time_is_refused_with_its_line) {
  for (const std::string text : {"",
                                 "tomorrow",
                                 "2020-13-01",
                                 "2020-02-30",
                                 "2021-02-29",
                                 "20-01-01",
                                 "2020-01-01T24:01",
                                 "2020-01-01T25:00",
                                 "2020-01-01T1",
                                 "2020-01-01T24:00 PM",
                                 "2020-01-01T10:60",
                                 "2020-01-01X10:00",
                                 "2020-01-01T10:00:00.",
                                 "2020-01-01T10:00:00.1234567",
                                 "2021-366",
                                 "2020-000",
                                 "2020-01-01,10:00",
                                 "2020-01-01T10h",
                                 "2021-W53",
                                 "2021-W00",
                                 "2021-W05-8",
                                 "2020-Q5",
                                 "1.5",
                                 "28-Jan-21",
                                 "Jan-21",
                                 "28-Jam-2021",
                                 "31-Feb-2021",
                                 "January",
                                 "Jan 2021 10:30",
                                 "1/31/2021 13:00 PM",
                                 "1/31/2021 0:30 AM",
                                 "20210131T1030001",
                                 "20210131T103",
                                 "2021-01-31 10:3015",
                                 "1611792000000000001",
                                 "2020-01-01T10:00+25:00",
                                 "99999999999999999999"}) {
    EXPECT_PRED2(contains, refusal_of({text}), "x.csv: column 't', line 2: ") << text;
  }
  EXPECT_PRED2(contains, refusal_of({"2020-01-01", "2020/01/02"}), "line 3: is written another way than in line 2; got '2020/01/02'");
  EXPECT_PRED2(contains, refusal_of({"2020-01-01T00:00Z", "2020-01-01T01:00"}), "line 3: has no offset from UTC");
  EXPECT_PRED2(contains, refusal_of({"-9000000000000000000"}), "is a step beyond");
}

TEST(time_axis, months_keep_their_day_and_ends_stay_ends) {
  EXPECT_EQ(followed({"2020-01", "2020-02", "2020-11"}), (Texts{"monthly", "2020-12", "2021-01"}));
  EXPECT_EQ(followed({"2019-11-30", "2019-12-31", "2020-01-31"}), (Texts{"monthly", "2020-02-29", "2020-03-31"}));
  EXPECT_EQ(followed({"2019-11-30", "2019-12-30", "2020-01-30"}), (Texts{"monthly", "2020-02-29", "2020-03-30"}));
  EXPECT_EQ(followed({"2024-01-31", "2024-02-29", "2024-03-29", "2024-04-30"}), (Texts{"monthly", "2024-05-31", "2024-06-28"}));
  EXPECT_EQ(followed({"2023-12-29", "2024-03-29"}), (Texts{"quarterly", "2024-06-28", "2024-09-30"}));
  EXPECT_EQ(followed({"2020-04-30", "2020-06-30"}), (Texts{"every 2 months", "2020-08-31", "2020-10-31"}));
  EXPECT_EQ(followed({"2020-03-31", "2020-06-30", "2020-09-30"}), (Texts{"quarterly", "2020-12-31", "2021-03-31"}));
  EXPECT_EQ(followed({"2020-Q1", "2020-Q2"}), (Texts{"quarterly", "2020-Q3", "2020-Q4"}));
  EXPECT_EQ(followed({"2019-02-28", "2020-02-29"}), (Texts{"yearly", "2021-02-28", "2022-02-28"}));
  EXPECT_EQ(followed({"2020-01-01T06:00:00", "2020-02-01T06:00:00"}), (Texts{"monthly", "2020-03-01T06:00:00", "2020-04-01T06:00:00"}));
  EXPECT_EQ(followed({"1577836800", "1580515200"}), (Texts{"monthly", "1583020800", "1585699200"}));
}

TEST(time_axis, days_hours_and_seconds) {
  EXPECT_EQ(followed({"2020-02-27", "2020-02-28"}), (Texts{"daily", "2020-02-29", "2020-03-01"}));
  EXPECT_EQ(followed({"2020-02-20", "2020-02-27"}), (Texts{"weekly", "2020-03-05", "2020-03-12"}));
  EXPECT_EQ(followed({"2020-12-31T22:00", "2020-12-31T23:00"}), (Texts{"hourly", "2021-01-01T00:00", "2021-01-01T01:00"}));
  EXPECT_EQ(followed({"2020-01-01 00:00:00+01:00", "2020-01-01 00:15:00+01:00"}, 1),
            (Texts{"every 15 minutes", "2020-01-01 00:30:00+01:00"}));
  EXPECT_EQ(followed({"2020-01-01T00:00:00.0Z", "2020-01-01T00:00:00.5Z"}, 1), (Texts{"every 500 milliseconds", "2020-01-01T00:00:01.0Z"}));
  EXPECT_EQ(followed({"2020-01-02", "2020-01-03", "2020-01-06", "2020-01-07", "2020-01-08", "2020-01-09", "2020-01-10"}),
            (Texts{"weekdays", "2020-01-13", "2020-01-14"}));
  EXPECT_EQ(followed({"2020-01-02", "2020-01-03", "2020-01-04", "2020-01-06", "2020-01-07"}), (Texts{"daily", "2020-01-08", "2020-01-09"}));
}

TEST(time_axis, days_and_hours_go_through_summer_time) {
  EXPECT_EQ(followed({"2021-03-27T00:00+01:00", "2021-03-28T00:00+01:00", "2021-03-29T00:00+02:00"}, 1),
            (Texts{"daily", "2021-03-30T00:00+02:00"}));
  EXPECT_EQ(followed({"2021-02-01T00:00+01:00", "2021-03-01T00:00+01:00", "2021-04-01T00:00+02:00"}, 1),
            (Texts{"monthly", "2021-05-01T00:00+02:00"}));
  EXPECT_EQ(followed({"2021-03-28T00:00+01:00", "2021-03-28T01:00+01:00", "2021-03-28T03:00+02:00"}, 1),
            (Texts{"hourly", "2021-03-28T04:00+02:00"}));
}

TEST(time_axis, numbers_are_steps) {
  EXPECT_EQ(followed({"10", "20", "40"}), (Texts{"steps of 10", "50", "60"}));
  EXPECT_EQ(followed({"1999", "2000"}), (Texts{"yearly", "2001", "2002"}));
  EXPECT_PRED2(contains, message_of<InvalidArgument>([] { followed({"2020-01-01"}); }), "two rows at least");
}

TEST(time_axis, seasons) {
  auto season = [](const Texts& texts) {
    StampColumn column = column_of(texts);
    return TimeAxis(column.format, {column.ticks}).season();
  };
  EXPECT_EQ(season({"2020-01", "2020-02"}), 12);
  EXPECT_EQ(season({"2020-Q1", "2020-Q2"}), 4);
  EXPECT_EQ(season({"2020-02-27", "2020-02-28"}), 7);
  EXPECT_EQ(season({"2020-01-01T00:00", "2020-01-01T01:00"}), 24);
  EXPECT_EQ(season({"1", "2"}), 1);
}

TEST(time_axis, the_year_9999_is_the_last) {
  StampColumn column = column_of({"9999-11", "9999-12"});
  TimeAxis axis(column.format, {column.ticks});
  EXPECT_PRED2(contains, message_of<InvalidArgument>([&] { axis.text(axis.ordinal(column.ticks[1]) + 1); }), "beyond the year 9999");
}

}  // namespace
}  // namespace tutti
