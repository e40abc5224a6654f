// The models that are served: loaded in the background, reloaded, and what stays when that fails.
#include "tutti/serve/models.h"

#include <thread>

#include "tests/scratch.h"
#include "tests/serve/served.h"
#include "tutti/serve/watched_file.h"

namespace tutti::serve {
namespace {

using std::chrono::milliseconds;
namespace fs = std::filesystem;

// Until it is so; false when it does not come to be.
template <class F>
bool comes_true(F&& f) {
  for (int i = 0; i < 2000; ++i) {
    if (f()) return true;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return false;
}

// As programs that write models do: beside, and renamed.
void put(const std::string& file, const std::string& path) {
  fs::create_directories(fs::path(path).parent_path());
  fs::copy_file(models_folder + file, path + ".part", fs::copy_options::overwrite_existing);
  fs::rename(path + ".part", path);
}

std::string reason_of(const Models& models, const std::string& name) { return models.index(name).at(0).reason; }

TEST(served_models, names_come_from_files_or_are_given) {
  EXPECT_EQ(name_and_file("/some/where/dense.keras"), (std::pair<std::string, std::string>{"dense", "/some/where/dense.keras"}));
  EXPECT_EQ(name_and_file("mine=/some/dense.keras"), (std::pair<std::string, std::string>{"mine", "/some/dense.keras"}));
  EXPECT_EQ(message_of<InvalidArgument>([] { name_and_file("a b.keras"); }),
            "[serve] a model's name is 1 to 128 letters, digits, '_', '-' and '.'; got 'a b'; hint: NAME=FILE");
  for (const char* bad : {"=x.keras", "..=x.keras", "a/b=x.keras", "\n=x.keras"}) EXPECT_THROW(name_and_file(bad), InvalidArgument) << bad;
  EXPECT_THROW(check_name(std::string(129, 'a')), InvalidArgument);
}

TEST(served_models, load_in_the_background_and_say_what_they_are) {
  Models models({});
  models.add("dense", models_folder + "dense.keras");
  models.add("time", models_folder + "open_time.keras");
  models.wait();
  ASSERT_TRUE(models.ready());
  const auto dense = models.find("dense");
  EXPECT_EQ(dense->inputs()[0].name, "features");
  EXPECT_EQ(dense->inputs()[0].shape, (Ints{-1, 4}));
  EXPECT_EQ(dense->outputs()[0].shape, (Ints{-1, 3}));
  EXPECT_TRUE(dense->is_batched());
  EXPECT_EQ(models.find("time")->inputs()[0].shape[0], -1);
  EXPECT_EQ(message_of<InvalidArgument>([&] { models.add("dense", "x.keras"); }), "[serve] two models are called 'dense'; hint: NAME=FILE");
  EXPECT_EQ(message_of<RequestError>([&] { models.find("dens"); }), "[serve] there is no model 'dens' (did you mean 'dense'?)");
  EXPECT_EQ(message_of<RequestError>([&] { models.find("dense", 7); }), "[serve] model 'dense' has no version 7");
}

TEST(served_models, one_that_fails_says_why_and_names_no_folder) {
  const Scratch scratch;
  Models models({});
  models.add("broken", scratch.write("broken.keras", "no model"));
  models.add("dense", models_folder + "dense.keras");
  models.wait();
  std::string why;
  EXPECT_FALSE(models.ready(&why));
  EXPECT_PRED2(contains, why, "model 'broken' could not be loaded: ");
  EXPECT_EQ(why.find(fs::path(scratch.path("x")).parent_path().string()), std::string::npos) << why;
  EXPECT_NE(models.find("dense"), nullptr);  // the others go on
  EXPECT_EQ(models.index("broken").at(0).state, ModelState::failed);
  try {
    models.find("broken");
    FAIL();
  } catch (const RequestError& e) {
    EXPECT_EQ(e.kind, FailureKind::not_ready);
  }
}

TEST(served_models, a_failed_reload_keeps_the_old_one_and_a_whole_file_replaces_it) {
  const Scratch scratch;
  const std::string path = scratch.path("m.keras");
  put("dense.keras", path);
  Models models({.poll = milliseconds(10)});
  models.add("m", path);
  models.wait();
  const auto old = models.find("m");
  scratch.write("m.keras", "half a model");
  ASSERT_TRUE(comes_true([&] { return !reason_of(models, "m").empty(); }));
  EXPECT_EQ(models.find("m"), old);
  EXPECT_TRUE(models.ready());
  put("batch_mean.keras", path);
  ASSERT_TRUE(comes_true([&] { return models.find("m") != old; }));
  EXPECT_EQ(reason_of(models, "m"), "");
  EXPECT_FALSE(models.find("m")->is_batched());
  // Whoever has the old one still computes with it.
  Scheduler scheduler({});
  Answers answers;
  const Tensor input = made_input(*old, 2, 1);
  scheduler.submit(request_for(old, input, answers.take(0)));
  ASSERT_TRUE(answers.wait(1));
  EXPECT_TRUE(same_bits(answers.of(0).outputs.at(0), alone("dense.keras", input)));
}

TEST(served_models, a_file_is_news_once_it_has_stopped_changing) {
  const Scratch scratch;
  const std::string path = scratch.write("file", "one");
  WatchedFile file(path);
  file.take();
  EXPECT_FALSE(file.is_news());
  scratch.write("file", "one and");
  EXPECT_FALSE(file.is_news());  // it has changed since the last look
  scratch.write("file", "one and two");
  EXPECT_FALSE(file.is_news());
  EXPECT_TRUE(file.is_news());
  file.take();
  EXPECT_FALSE(file.is_news());
  fs::remove(path);
  EXPECT_FALSE(file.is_news());
  EXPECT_FALSE(file.is_news());  // gone is no news: what is loaded stays
}

TEST(served_models, unloaded_ones_are_not_found_until_they_are_loaded_again) {
  Models models({});
  models.add("dense", models_folder + "dense.keras");
  models.wait();
  const auto told = [&](auto&& order) {
    std::promise<Failure> done;
    order([&](const Failure& failure) { done.set_value(failure); });
    return done.get_future().get();
  };
  EXPECT_FALSE(told([&](auto done) { models.unload("dense", done); }));
  EXPECT_THROW(models.find("dense"), RequestError);
  EXPECT_EQ(models.index("dense").at(0).state, ModelState::unloaded);
  EXPECT_FALSE(told([&](auto done) { models.load("dense", done); }));
  EXPECT_NE(models.find("dense"), nullptr);
  EXPECT_EQ(told([&](auto done) { models.load("other", done); }).kind, FailureKind::not_found);
  EXPECT_EQ(told([&](auto done) { models.unload("other", done); }).kind, FailureKind::not_found);
}

TEST(served_models, a_repository_serves_the_newest_versions_and_picks_up_new_ones) {
  const Scratch scratch;
  const std::string folder = scratch.path("models/");
  put("dense.keras", folder + "m/1/model.keras");
  put("dense.keras", folder + "m/9/model.keras");
  put("dense.keras", folder + "m/10/model.keras");
  put("dense.keras", folder + "m/latest/model.keras");  // no number
  put("dense.keras", folder + "m/011/model.keras");
  put("legacy.h5", folder + "old/3/model.h5");
  put("legacy.h5", folder + ".new/1/model.h5");  // hidden
  fs::create_directories(folder + "empty/1");
  Models models({.repository = folder, .versions = 2, .poll = milliseconds(10)});
  models.wait();
  EXPECT_TRUE(models.ready());
  EXPECT_EQ(models.find("m")->version(), 10);
  EXPECT_EQ(models.find("m", 9)->version(), 9);
  EXPECT_EQ(models.find("old")->version(), 3);
  EXPECT_THROW(models.find("m", 1), RequestError);
  EXPECT_THROW(models.find("empty"), RequestError);
  EXPECT_THROW(models.find(".new"), RequestError);
  scratch.write("part", "");
  fs::create_directories(folder + "m/12");
  scratch.write("models/m/12/model.keras", "half");
  ASSERT_TRUE(comes_true([&] { return models.index("m").size() == 3 && !models.index("m").back().reason.empty(); }));
  EXPECT_EQ(models.find("m")->version(), 10);
  put("batch_mean.keras", folder + "m/12/model.keras");
  ASSERT_TRUE(comes_true([&] { return models.find("m")->version() == 12; }));
  EXPECT_TRUE(comes_true([&] { return models.index("m").size() == 2; }));  // 9 is let go of
  fs::remove_all(folder + "old");
  EXPECT_TRUE(comes_true([&] { return models.index("old").empty(); }));
  EXPECT_THROW(Models({.repository = scratch.path("nowhere")}), InvalidArgument);
}

TEST(served_models, where_the_newest_version_is_broken_the_one_before_is_served) {
  const Scratch scratch;
  put("dense.keras", scratch.path("models/m/1/model.keras"));
  put("dense.keras", scratch.path("models/m/2/model.keras"));
  fs::create_directories(scratch.path("models/m/3"));
  scratch.write("models/m/3/model.keras", "broken");
  Models models({.repository = scratch.path("models"), .poll = milliseconds(10)});
  models.wait();
  ASSERT_TRUE(comes_true([&] { return models.ready(); }));
  EXPECT_EQ(models.find("m")->version(), 2);
  EXPECT_EQ(models.index("m").back().state, ModelState::failed);
  EXPECT_THROW(models.find("m", 1), RequestError);
}

TEST(served_models, warm_ones_have_all_their_programs) {
  Models models({.compile = {.batch = 12}, .warm = true});
  models.add("dense", models_folder + "dense.keras");
  models.wait();
  Scheduler scheduler({});
  const auto model = models.find("dense");
  Answers answers;
  {
    Gate gate(scheduler, model);
    for (int64_t i = 0; i < 12; ++i) scheduler.submit(request_for(model, made_input(*model, 1, i), answers.take(i)));
  }
  ASSERT_TRUE(answers.wait(12));
  EXPECT_EQ(model->statistics().read().batches.rbegin()->first, 12);  // at the first try
}

}  // namespace
}  // namespace tutti::serve
