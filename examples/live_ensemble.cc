#include <tutti/tutti.h>

#include <cstdio>
#include <vector>

void show(tutti::LiveEnsemble& live) {
  std::vector<float> image(16 * 16, 0.0f), quarters(4);
  image[3 * 16 + 12] = 1.0f;
  live.now()(image, quarters);
  std::printf("%zu members: %.2f %.2f %.2f %.2f\n", live.members().size(), quarters[0], quarters[1], quarters[2], quarters[3]);
}

int main(int count, char** words) try {
  tutti::LiveEnsemble live(tutti::load(count > 1 ? words[1] : "two.toml"), {.batch = 1});
  show(live);
  for (int i = 2; i < count; ++i) live.add(words[i], tutti::load(words[i]));
  show(live);
  live.drop(live.members().front());
  show(live);
} catch (const tutti::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
