// The owner of the device: who is computed when, with whom, and that every request is answered exactly once.
#include "tutti/serve/scheduler.h"

#include <random>
#include <set>
#include <thread>

#include "tests/serve/served.h"
#include "tutti/serve/programs.h"

namespace tutti::serve {
namespace {

TEST(scheduler, batched_answers_are_bit_for_bit_those_of_each_request_alone) {
  const auto model = served("dense.keras");
  Scheduler scheduler({});
  Answers answers;
  std::vector<Tensor> inputs;
  for (int round = 0; round < 3; ++round) {  // sizes that are compiled meanwhile take part later
    const size_t before = inputs.size();
    {
      Gate gate(scheduler, model);
      for (int64_t i = 0; i < 40; ++i) {
        inputs.push_back(made_input(*model, 1 + i % 3, i));
        scheduler.submit(
            request_for(model, inputs.back(), answers.take(static_cast<int64_t>(inputs.size() - 1)), 1 + static_cast<uint64_t>(i % 5)));
      }
    }
    ASSERT_TRUE(answers.wait(before + 40));
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Answer answer = answers.of(static_cast<int64_t>(i));
    ASSERT_FALSE(answer.failure) << answer.failure.message;
    ASSERT_TRUE(same_bits(answer.outputs.at(0), alone("dense.keras", inputs[i]))) << "request " << i;
  }
  const Statistics statistics = model->statistics().read();
  EXPECT_GT(statistics.batches.rbegin()->first, 3);  // some were together
  EXPECT_EQ(statistics.requests[0], 123);
  EXPECT_EQ(statistics.latency.count, 123);
}

TEST(scheduler, models_that_mix_samples_get_each_request_alone) {
  const auto model = served("batch_mean.keras");
  EXPECT_FALSE(model->is_batched());
  Scheduler scheduler({});
  Answers answers;
  std::vector<Tensor> inputs;
  {
    Gate gate(scheduler, model);
    for (int64_t i = 0; i < 6; ++i) {
      inputs.push_back(made_input(*model, 2 + i % 2, i));
      scheduler.submit(request_for(model, inputs.back(), answers.take(i)));
    }
  }
  ASSERT_TRUE(answers.wait(6));
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_TRUE(same_bits(answers.of(i).outputs.at(0), alone("batch_mean.keras", inputs[static_cast<size_t>(i)]))) << i;
  EXPECT_EQ(model->statistics().read().batches.rbegin()->first, 3);
}

TEST(scheduler, a_request_larger_than_any_batch_is_computed_in_parts) {
  const auto model = served("dense.keras", 8);
  Scheduler scheduler({});
  Answers answers;
  const Tensor input = made_input(*model, 101, 3);
  scheduler.submit(request_for(model, input, answers.take(0)));
  ASSERT_TRUE(answers.wait(1));
  EXPECT_TRUE(same_bits(answers.of(0).outputs.at(0), alone("dense.keras", input)));
}

TEST(scheduler, open_extents_are_bound_by_each_request) {
  const auto model = served("open_time.keras");
  Scheduler scheduler({});
  Answers answers;
  std::vector<Tensor> inputs;
  for (int64_t steps : {3, 7, 3, 7, 4}) {
    Ints extents = model->inputs()[0].shape;
    extents[0] = 1;
    for (int64_t& extent : extents)
      if (extent < 0) extent = steps;
    Tensor input(model->inputs()[0].dtype, extents);
    std::ranges::fill(input.bytes(), std::byte{0});
    inputs.push_back(input);
    scheduler.submit(request_for(model, input, answers.take(static_cast<int64_t>(inputs.size() - 1)), 1));
  }
  ASSERT_TRUE(answers.wait(5));
  EXPECT_EQ(answers.order(), (std::vector<int64_t>{0, 1, 2, 3, 4}));
  for (int64_t i = 0; i < 5; ++i) {
    ASSERT_FALSE(answers.of(i).failure) << answers.of(i).failure.message;
    EXPECT_TRUE(same_bits(answers.of(i).outputs.at(0), alone("open_time.keras", inputs[static_cast<size_t>(i)])));
  }
}

TEST(scheduler, requests_of_other_shapes_do_not_make_a_batch_larger) {
  const auto model = served("open_time.keras");
  Scheduler scheduler({});
  Answers answers;
  constexpr int64_t shapes = 8;
  int64_t before = 0;
  {
    Gate gate(scheduler, model);
    before = model->programs().compilations();
    for (int64_t i = 0; i < shapes; ++i) {
      Tensor input(DType::f32, {1, 10 + i, 2});
      std::ranges::fill(input.bytes(), std::byte{0});
      scheduler.submit(request_for(model, input, answers.take(i)));
    }
  }
  ASSERT_TRUE(answers.wait(shapes));
  scheduler.stop();
  EXPECT_EQ(model->programs().compilations() - before, shapes);  // each for one sample
  for (int64_t i = 0; i < shapes; ++i) EXPECT_EQ(model->programs().choose({Shape({10 + i, 2})}, 1).size, 1);
}

TEST(scheduler, requests_of_a_client_end_in_order_whatever_they_ask_for) {
  const auto dense = served("dense.keras"), image = served("image.keras"), mean = served("batch_mean.keras");
  const std::shared_ptr<ModelVersion> all[] = {dense, image, mean};
  Scheduler scheduler({});
  Answers answers;
  {
    Gate gate(scheduler, dense);
    std::mt19937 random(7);
    for (int64_t i = 0; i < 90; ++i) {
      const auto& model = all[random() % 3];
      scheduler.submit(request_for(model, made_input(*model, 1 + static_cast<int64_t>(random() % 4), i), answers.take(i),
                                   1 + static_cast<uint64_t>(i % 3)));
    }
  }
  ASSERT_TRUE(answers.wait(90));
  std::array<int64_t, 3> last = {-1, -1, -1};
  for (int64_t id : answers.order()) {
    EXPECT_LT(last[static_cast<size_t>(id % 3)], id);
    last[static_cast<size_t>(id % 3)] = id;
  }
}

TEST(scheduler, a_client_with_many_requests_does_not_keep_others_waiting) {
  const auto model = served("batch_mean.keras");  // one at a time: the order can be seen
  Scheduler scheduler({});
  Answers answers;
  {
    Gate gate(scheduler, model);
    for (int64_t i = 0; i < 30; ++i) scheduler.submit(request_for(model, made_input(*model, 1, i), answers.take(i), 1));
    scheduler.submit(request_for(model, made_input(*model, 1, 0), answers.take(100), 2));
  }
  ASSERT_TRUE(answers.wait(31));
  const auto order = answers.order();
  EXPECT_LE(std::ranges::find(order, 100) - order.begin(), 1);
}

TEST(scheduler, a_request_of_very_many_samples_does_not_keep_others_waiting) {
  const auto model = served("dense.keras", 8), other = served("batch_mean.keras");
  Scheduler scheduler({});
  Answers answers;
  const Tensor large = made_input(*model, 3001, 1);
  {
    Gate gate(scheduler, other);
    scheduler.submit(request_for(model, large, answers.take(0), 1));
    scheduler.submit(request_for(model, made_input(*model, 2, 2), answers.take(1), 1));  // of the same client: in order
    scheduler.submit(request_for(model, made_input(*model, 2, 3), answers.take(2), 2));
    scheduler.submit(request_for(other, made_input(*other, 1, 4), answers.take(3), 3));  // its program is there
  }
  ASSERT_TRUE(answers.wait(4));
  const auto order = answers.order();
  EXPECT_EQ(std::set<int64_t>(order.begin(), order.begin() + 2), (std::set<int64_t>{2, 3}));
  EXPECT_EQ(order[2], 0);
  EXPECT_TRUE(same_bits(answers.of(0).outputs.at(0), alone("dense.keras", large)));
  EXPECT_TRUE(same_bits(answers.of(2).outputs.at(0), alone("dense.keras", made_input(*model, 2, 3))));
}

TEST(scheduler, the_rest_of_a_large_request_can_be_cancelled_and_has_its_deadline) {
  const auto model = served("dense.keras", 1);
  Scheduler scheduler({});
  Answers answers;
  constexpr int64_t many = 2'000'000;  // seconds
  const Tensor large(DType::f32, {many, 4});
  scheduler.submit(request_for(model, large, answers.take(0), 1));
  const Ticket second = scheduler.submit(request_for(model, large, answers.take(1), 2));
  Request third = request_for(model, large, answers.take(2), 3);
  third.deadline = Clock::now() + std::chrono::milliseconds(40);
  scheduler.submit(std::move(third));
  ASSERT_TRUE(answers.wait(1));
  EXPECT_EQ(answers.of(2).failure.kind, FailureKind::deadline);
  for (int i = 0; i < 100 && answers.order().size() < 3; ++i) {  // whether it is queued or a part of it is computed
    scheduler.cancel_client(1);
    scheduler.cancel(second);
    answers.wait(3, std::chrono::milliseconds(20));
  }
  EXPECT_EQ(answers.of(0).failure.kind, FailureKind::cancelled);
  EXPECT_EQ(answers.of(1).failure.kind, FailureKind::cancelled);
  EXPECT_LT(model->statistics().read().samples, many);
}

TEST(scheduler, a_model_with_many_requests_does_not_keep_others_waiting) {
  const auto busy = served("batch_mean.keras"), other = served("dense.keras");
  Scheduler scheduler({});
  Answers answers;
  {
    Gate gate(scheduler, other);
    for (int64_t i = 0; i < 30; ++i) scheduler.submit(request_for(busy, made_input(*busy, 1, i), answers.take(i)));
    scheduler.submit(request_for(other, made_input(*other, 1, 0), answers.take(100)));
  }
  ASSERT_TRUE(answers.wait(31));
  const auto order = answers.order();
  EXPECT_LE(std::ranges::find(order, 100) - order.begin(), 1);
}

TEST(scheduler, higher_priorities_go_first) {
  const auto model = served("batch_mean.keras");
  Scheduler scheduler({});
  Answers answers;
  {
    Gate gate(scheduler, model);
    for (int64_t i = 0; i < 9; ++i)
      scheduler.submit(request_for(model, made_input(*model, 1, i), answers.take(i), 0, static_cast<int>(i % 3)));
  }
  ASSERT_TRUE(answers.wait(9));
  EXPECT_EQ(answers.order(), (std::vector<int64_t>{2, 5, 8, 1, 4, 7, 0, 3, 6}));
}

TEST(scheduler, a_full_queue_refuses_at_once) {
  const auto model = served("dense.keras");
  Scheduler scheduler({.queue = 3});
  Answers answers;
  Gate gate(scheduler, model);
  for (int64_t i = 0; i < 5; ++i) scheduler.submit(request_for(model, made_input(*model, 1, i), answers.take(i)));
  ASSERT_EQ(answers.order(), (std::vector<int64_t>{3, 4}));  // though the device is busy
  EXPECT_EQ(answers.of(3).failure.kind, FailureKind::queue_full);
  EXPECT_EQ(answers.of(3).failure.message, "[serve] 3 requests are queued already; hint: later, or --queue");
  EXPECT_EQ(scheduler.load().queued, 3);
  gate.open();
  ASSERT_TRUE(answers.wait(5));
  for (int64_t i = 0; i < 3; ++i) EXPECT_FALSE(answers.of(i).failure);
}

TEST(scheduler, a_deadline_ends_a_request_in_the_queue_though_the_device_is_busy) {
  const auto model = served("dense.keras");
  Scheduler scheduler({});
  Answers answers;
  Gate gate(scheduler, model);
  Request late = request_for(model, made_input(*model, 1, 0), answers.take(0)),
          past = request_for(model, made_input(*model, 1, 0), answers.take(1));
  late.deadline = Clock::now() + std::chrono::milliseconds(30);
  past.deadline = Clock::now() - std::chrono::milliseconds(1);
  scheduler.submit(std::move(late));
  scheduler.submit(std::move(past));
  ASSERT_TRUE(answers.wait(2));
  EXPECT_EQ(answers.order(), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(answers.of(0).failure.kind, FailureKind::deadline);
  EXPECT_EQ(answers.of(1).failure.kind, FailureKind::deadline);
  EXPECT_EQ(scheduler.load().queued, 0);
  EXPECT_EQ(model->statistics().read().requests[static_cast<size_t>(FailureKind::deadline)], 2);
}

TEST(scheduler, what_is_late_is_not_computed_though_the_timer_has_not_come_to_it) {
  const auto model = served("dense.keras");
  Scheduler scheduler({});
  Answers answers;
  std::promise<void> told, go_on;
  {
    Gate gate(scheduler, model);
    // The timer's thread is kept in the first one's done().
    Request first = request_for(model, made_input(*model, 1, 0), [&](Answer&&) {
      told.set_value();
      go_on.get_future().wait();
    });
    first.deadline = Clock::now() + std::chrono::milliseconds(5);
    scheduler.submit(std::move(first));
    told.get_future().wait();
    Request second = request_for(model, made_input(*model, 1, 0), answers.take(0));
    const auto deadline = Clock::now() + std::chrono::milliseconds(50);
    second.deadline = deadline;
    scheduler.submit(std::move(second));
    std::this_thread::sleep_until(deadline);
  }
  EXPECT_TRUE(answers.wait(1));
  go_on.set_value();
  EXPECT_EQ(answers.of(0).failure.kind, FailureKind::deadline);
  EXPECT_EQ(model->statistics().read().samples, 1);  // the gate's
}

TEST(scheduler, what_is_cancelled_is_never_computed) {
  const auto model = served("dense.keras");
  Scheduler scheduler({});
  Answers answers;
  {
    Gate gate(scheduler, model);
    const Ticket one = scheduler.submit(request_for(model, made_input(*model, 1, 0), answers.take(0), 1));
    for (int64_t i = 1; i < 4; ++i) scheduler.submit(request_for(model, made_input(*model, 1, i), answers.take(i), 2));
    scheduler.submit(request_for(model, made_input(*model, 1, 4), answers.take(4), 1));
    scheduler.cancel(one);
    scheduler.cancel(one);
    scheduler.cancel_client(2);
    EXPECT_EQ(answers.order().size(), 4u);
  }
  ASSERT_TRUE(answers.wait(5));
  EXPECT_EQ(answers.of(0).failure.kind, FailureKind::cancelled);
  EXPECT_EQ(answers.of(3).failure.kind, FailureKind::cancelled);
  EXPECT_FALSE(answers.of(4).failure);
  EXPECT_EQ(model->statistics().read().samples, 2);  // the gate's and the last
}

TEST(scheduler, a_request_that_fails_does_so_alone) {
  const auto model = served("dense.keras");
  Scheduler scheduler({});
  Answers answers;
  {
    Gate gate(scheduler, model);
    for (int64_t i = 0; i < 6; ++i) {
      Request request = request_for(model, made_input(*model, 1, i), answers.take(i));
      if (i == 2) request.place = [](const auto&) -> std::vector<Tensor> { refuse(FailureKind::bad_request, "no room"); };
      if (i == 4) request.place = [](const auto&) -> std::vector<Tensor> { throw std::bad_alloc(); };
      scheduler.submit(std::move(request));
    }
  }
  ASSERT_TRUE(answers.wait(6));
  for (int64_t i : {0, 1, 3, 5}) EXPECT_TRUE(same_bits(answers.of(i).outputs.at(0), alone("dense.keras", made_input(*model, 1, i))));
  EXPECT_EQ(answers.of(2).failure.message, "[serve] no room");
  EXPECT_EQ(answers.of(4).failure.kind, FailureKind::failed);
}

TEST(scheduler, what_does_not_fit_is_refused_with_names_and_values) {
  const auto model = served("dense.keras");
  Scheduler scheduler({});
  Answers answers;
  scheduler.submit(request_for(model, Tensor(DType::f32, {2, 3}), answers.take(0)));
  scheduler.submit(request_for(model, Tensor(DType::f64, {2, 4}), answers.take(1)));
  scheduler.submit(request_for(model, Tensor(DType::f32, {0, 4}), answers.take(2)));
  scheduler.submit(request_for(nullptr, Tensor(DType::f32, {1, 4}), answers.take(3)));
  Request none = request_for(model, {}, answers.take(4));
  none.inputs.clear();
  scheduler.submit(std::move(none));
  ASSERT_TRUE(answers.wait(5));
  EXPECT_EQ(answers.of(0).failure.message, "[serve] model 'dense': input 'features' is f32[-1, 4]; got f32[2, 3]");
  EXPECT_EQ(answers.of(1).failure.message, "[serve] model 'dense': input 'features' is f32[-1, 4]; got f64[2, 4]");
  EXPECT_EQ(answers.of(2).failure.message, "[serve] model 'dense': input 'features' has no samples, it is f32[0, 4]");
  EXPECT_EQ(answers.of(3).failure.kind, FailureKind::not_found);
  EXPECT_EQ(answers.of(4).failure.message, "[serve] model 'dense' takes 1 input; got 0");
}

TEST(scheduler, draining_answers_what_is_there_and_takes_no_more) {
  const auto model = served("dense.keras");
  Scheduler scheduler({});
  Answers answers;
  {
    Gate gate(scheduler, model);
    for (int64_t i = 0; i < 5; ++i) scheduler.submit(request_for(model, made_input(*model, 1, i), answers.take(i)));
    EXPECT_FALSE(scheduler.drain(std::chrono::milliseconds(20)));
    scheduler.submit(request_for(model, made_input(*model, 1, 5), answers.take(5)));
    EXPECT_EQ(answers.of(5).failure.kind, FailureKind::draining);
    gate.open();
    EXPECT_TRUE(scheduler.drain(std::chrono::seconds(20)));
  }
  for (int64_t i = 0; i < 5; ++i) EXPECT_FALSE(answers.of(i).failure);
}

TEST(scheduler, draining_ends_the_wait_for_more) {
  const auto model = served("dense.keras");
  Scheduler scheduler({.max_wait = std::chrono::hours(1)});
  Answers answers;
  scheduler.submit(request_for(model, made_input(*model, 1, 0), answers.take(0)));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it sleeps
  EXPECT_TRUE(scheduler.drain(std::chrono::seconds(20)));
  EXPECT_FALSE(answers.of(0).failure);
}

TEST(scheduler, what_is_queued_when_it_stops_is_answered_too) {
  const auto model = served("dense.keras");
  Answers answers;
  auto scheduler = std::make_unique<Scheduler>(SchedulerOptions{.max_wait = std::chrono::seconds(10)});
  for (int64_t i = 0; i < 4; ++i) scheduler->submit(request_for(model, made_input(*model, 1, i), answers.take(i)));
  scheduler->stop();
  ASSERT_EQ(answers.order().size(), 4u);
  EXPECT_EQ(answers.of(0).failure.kind, FailureKind::draining);
}

TEST(scheduler, a_batch_waits_for_more_where_it_may) {
  const auto model = served("dense.keras", 4);
  Scheduler scheduler({.max_wait = std::chrono::milliseconds(300)});
  Answers answers;
  const auto begun = Clock::now();
  scheduler.submit(request_for(model, made_input(*model, 1, 9), answers.take(9)));
  ASSERT_TRUE(answers.wait(1));
  EXPECT_GE(Clock::now() - begun, std::chrono::milliseconds(299));
}

TEST(scheduler, a_full_batch_does_not_wait) {
  const auto model = served("dense.keras", 4);
  Scheduler scheduler({.max_wait = std::chrono::minutes(5)});
  Answers answers;
  for (int64_t i = 0; i < 4; ++i) scheduler.submit(request_for(model, made_input(*model, 1, i), answers.take(i)));
  EXPECT_TRUE(answers.wait(4));
}

TEST(scheduler, threads_that_submit_and_cancel_get_each_answer_exactly_once) {
  const auto dense = served("dense.keras"), mean = served("batch_mean.keras");
  Scheduler scheduler({.queue = 64});
  constexpr int threads = 4, each = 300;
  std::array<std::atomic<int>, threads* each> times = {};
  std::atomic<int> wrong = 0, all = 0;
  const Tensor input = made_input(*dense, 1, 5), expected = alone("dense.keras", input);
  std::vector<std::thread> submitters;
  for (int t = 0; t < threads; ++t)
    submitters.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      const uint64_t client = scheduler.new_client();
      for (int i = 0; i < each; ++i) {
        const bool is_dense = random() % 2 == 0;
        Request request = request_for(
            is_dense ? dense : mean, is_dense ? input : made_input(*mean, 1, i),
            [&, is_dense, id = t * each + i](Answer&& answer) {
              if (is_dense && !answer.failure && !same_bits(answer.outputs.at(0), expected)) ++wrong;
              ++times[static_cast<size_t>(id)];
              ++all;
            },
            client, static_cast<int>(random() % 3));
        if (random() % 4 == 0) request.deadline = Clock::now() + std::chrono::microseconds(random() % 2000);
        const Ticket ticket = scheduler.submit(std::move(request));
        if (random() % 5 == 0) scheduler.cancel(ticket);
        if (random() % 50 == 0) scheduler.cancel_client(client);
      }
    });
  for (auto& thread : submitters) thread.join();
  EXPECT_TRUE(scheduler.drain(std::chrono::seconds(20)));
  scheduler.stop();
  EXPECT_EQ(all, threads * each);
  EXPECT_EQ(wrong, 0);
  for (const auto& count : times) ASSERT_EQ(count, 1);
}

}  // namespace
}  // namespace tutti::serve
