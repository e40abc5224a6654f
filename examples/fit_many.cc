// Trains a hundred small models at once, each on data of its own, without any file: one for each of a hundred shops that know their own
// price curve. Then asks one of them.
#include <tutti/tutti.h>

#include <cstdio>
#include <random>
#include <string>
#include <vector>

int main() try {
  constexpr int64_t samples = 256;
  std::vector<tutti::FitJob> jobs(100);
  for (size_t shop = 0; shop < jobs.size(); ++shop) {
    // Sales fall with the price, and each shop has its own slope.
    const float slope = 0.5f + static_cast<float>(shop) / 100;
    std::mt19937 random(static_cast<unsigned>(shop));
    std::vector<float> price(samples), sales(samples);
    for (size_t i = 0; i < price.size(); ++i) {
      price[i] = static_cast<float>(random() % 1000) / 500;
      sales[i] = 2 - slope * price[i];
    }
    tutti::FitJob& job = jobs[shop];
    job.name = "shop_" + std::to_string(shop);
    job.architecture = tutti::Sequential({1}).dense(8, "tanh").dense(1).config();
    job.x = tutti::Tensor::of<float>({samples, 1}, price);
    job.y = tutti::Tensor::of<float>({samples, 1}, sales);
    job.loss = "mse";
    job.optimizer = tutti::JsonMembers{{"name", "adam"}, {"learning_rate", 0.02}};
    job.epochs = 60;
    job.seed = static_cast<int64_t>(shop);
  }
  const tutti::FitReport done = tutti::fit(jobs);

  size_t good = 0;
  for (const tutti::FitResult& result : done.jobs) good += result.error.empty() && result.loss < 0.01;
  std::printf("%zu of %zu models have a loss below 0.01\n", good, done.jobs.size());

  const tutti::Model shop(done.jobs[50].model);
  const std::vector<float> one{1.0f};
  const float sales = shop.predict({tutti::Tensor::of<float>({1, 1}, one)})[0].as<float>()[0];
  std::printf("shop 50 sells %.1f at the price 1\n", static_cast<double>(sales));
  return good == done.jobs.size() ? 0 : 1;
} catch (const tutti::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
