// SPDX-License-Identifier: Apache-2.0
// Whatever the parts of an index hold, with checksums that agree, it is refused with a sentence, or a search
// answers or fails aloud. The first bytes of an input say where in which part the others are written, and
// whether its vectors lie on the disk as floats or as bytes.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "ann/generate.hpp"
#include "ann/manifest.hpp"
#include "terrace/error.hpp"

namespace {

using namespace terrace::ann;

std::string contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void put(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

struct Small {
  explicit Small(ElementType element)
      : folder(std::filesystem::temp_directory_path() /
               ("terrace-ann-fuzz-" + std::to_string(static_cast<int>(element)) + "-" +
                std::to_string(getpid()))) {
    Mixture mixture;
    mixture.count = 200;
    mixture.dimension = 8;
    mixture.clusters = 4;
    mixture.intrinsic = 4;
    BuildOptions options;
    options.links = 4;
    options.fast = terrace::Bytes{20'000};
    options.code_bytes = 2;
    Vectors vectors = generate(mixture);
    if (element == ElementType::u8) {
      for (float& value : vectors.values) value = std::round(std::clamp(value * 16 + 128, 0.0F, 255.0F));
    }
    Index::build(std::move(vectors), options).value().save(folder).value();
    fast = contents(folder / "fast.bin");
    slow = contents(folder / "slow.bin");
    manifest = parse_manifest(contents(folder / "manifest.json")).value();
    if (manifest.element != element) std::abort();
    mixture.count = 2;
    queries = generate(mixture, 1);
  }
  ~Small() { std::filesystem::remove_all(folder); }

  std::filesystem::path folder;
  std::string fast, slow;
  Manifest manifest;
  Vectors queries;
};

std::uint32_t checksum_of(const std::string& text) {
  return checksum({reinterpret_cast<const std::byte*>(text.data()), text.size()});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Small floats(ElementType::f32), bytes(ElementType::u8);
  if (size < 4) return 0;
  const Small& small = data[0] % 4 < 2 ? floats : bytes;
  std::string fast = small.fast, slow = small.slow;
  std::string& part = data[0] % 2 == 0 ? fast : slow;
  const std::size_t at = (data[1] * 65536U + data[2] * 256U + data[3]) % part.size();
  std::memcpy(part.data() + at, data + 4, std::min(size - 4, part.size() - at));
  Manifest manifest = small.manifest;
  manifest.fast_checksums = {checksum_of(fast)};
  manifest.slow_checksums = {checksum_of(slow)};
  put(small.folder / "fast.bin", fast);
  put(small.folder / "slow.bin", slow);
  put(small.folder / "manifest.json", print_manifest(manifest));
  for (const Placement placement : {Placement::memory, Placement::disk}) {
    const auto index = Index::open(small.folder, {.placement = placement});
    if (!index) {
      if (index.error().message.empty()) std::abort();
      continue;
    }
    try {
      for (const auto& list : index->search(small.queries, 5, {.ef1 = 8, .ef0 = 8, .beam = 2}).value())
        if (list.size() != 5) std::abort();
    } catch (const terrace::EnvironmentError&) {
    }
  }
  return 0;
}
