#include <tutti/tutti.h>

#include <cstdio>
#include <vector>

int main(int count, char** words) try {
  std::vector<tutti::Model> members;
  for (int i = 1; i < count; ++i) members.push_back(tutti::load(words[i]));
  auto all = tutti::ensemble(members, {.reductions = {{tutti::Reduce::mean}, {tutti::Reduce::std}}});
  auto predict = tutti::compile(all, {.batch = 1});

  std::vector<float> image(16 * 16, 0.0f), mean(4), deviation(4);
  image[3 * 16 + 12] = 1.0f;
  std::span<const std::byte> in[] = {std::as_bytes(std::span(image))};
  std::span<std::byte> out[] = {std::as_writable_bytes(std::span(mean)), std::as_writable_bytes(std::span(deviation))};
  predict(in, out);
  for (size_t i = 0; i < mean.size(); ++i) std::printf("%.2f +- %.2f  ", mean[i], deviation[i]);
  std::printf("\n");
} catch (const tutti::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
