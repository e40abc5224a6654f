#include <tutti/tutti.h>

#include <cstdio>
#include <vector>

int main(int count, char** words) try {
  auto model = tutti::load(count > 1 ? words[1] : "spots.keras");
  auto predict = tutti::compile(model, {.batch = 1});

  std::vector<float> image(16 * 16, 0.0f), quarters(4);
  image[3 * 16 + 12] = 1.0f;  // a spot in the upper right quarter
  predict(image, quarters);
  for (float probability : quarters) std::printf("%.2f ", probability);
  std::printf("\n");
} catch (const tutti::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
