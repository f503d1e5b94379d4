// Hints that help: the same forward and backward sweep over emulated slow memory, with and without hints.
#include <cstdio>
#include <numeric>
#include <terrace/terrace.hpp>

namespace {

using Clock = std::chrono::steady_clock;
using Layer = terrace::array<float>;
constexpr std::size_t kLayers = 24,
                      kElements = 2 << 20;  // 24 layers of 8 MiB, of which a third fits in fast memory

// The kernel uses every element several times, as convolutions do.
float compute(const terrace::view<const float>& input, terrace::view<float>& output) {
  for (int pass = 0; pass < 4; ++pass) {
    for (std::size_t i = 0; i < output.size(); ++i) output[i] = 0.5f * input[i] + 1.f;
  }
  return output[0];
}

float train(terrace::Manager& manager, bool hinted) {
  std::vector<Layer> layers;
  layers.emplace_back(manager, kElements, 1.f);
  for (std::size_t i = 1; i < kLayers; ++i) {  // forward: each layer's output is kept for the backward pass
    layers.emplace_back(manager, kElements);
    auto output = layers[i].write();
    compute(layers[i - 1].read(), output);
    if (hinted) layers[i - 1].archive();  // not needed for a while, so it may be evicted
  }
  float loss = 0;
  Layer gradient(manager, kElements, 0.f);
  for (std::size_t i = kLayers; i-- > 0;) {           // backward: the latest first
    if (hinted && i >= 2) layers[i - 2].will_read();  // needed soon, so it is prefetched while we compute
    {
      auto output = gradient.write();
      loss += compute(layers[i].read(), output);
    }
    if (hinted) layers[i].retire();  // never used again, so it need not be written back
  }
  return loss;
}

void run(const char* name, std::string_view policy, bool hinted) {
  terrace::Manager manager({"dram:64MiB", "emulated:512MiB,read=4GB/s,write=1300MB/s,latency=304ns"}, policy);
  const Clock::time_point began = Clock::now();
  const float loss = train(manager, hinted);
  const terrace::Seconds took = Clock::now() - began;
  const auto statistics = manager.statistics();
  std::printf("%-28s %6.0f ms, of which %4.0f waiting; wrote %8s to slow memory; loss %.4f\n", name,
              took.count() * 1e3, statistics.waited.count() * 1e3,
              readable(statistics.links[0][1].bytes).c_str(), loss);
}

}  // namespace

int main() try {
  run("least recently used, no hints", "lru", false);
  run("hints, moving when asked", "LMP", true);
  run("hints, moving ahead", "async-LMP", true);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
