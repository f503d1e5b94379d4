// Writing a policy: small objects stay in fast memory; large ones live in slow memory and are fetched only to
// be written.
#include <cstdio>
#include <terrace/terrace.hpp>

namespace {

using namespace terrace::literals;

// RecencyPolicy knows how to make room and to fetch; a derived policy says where objects are placed and what
// hints mean.
class SmallFirst final : public terrace::RecencyPolicy {
 public:
  explicit SmallFirst(terrace::Bytes limit) : limit_(limit) {}

  terrace::Result<terrace::Region> place(terrace::Regions& regions, terrace::Bytes size) override {
    return place_at(regions, size <= limit_ ? kFastest : slowest(regions), size);
  }

  void will_write(terrace::Regions& regions, terrace::ObjectId object) override {
    (void)fetch_to(regions, object, kFastest);  // a hint may fail; the object is then used where it is
  }

  void archive(terrace::Regions& regions, terrace::ObjectId object) override {
    if (regions.size(object) > limit_ && regions.movable(object) &&
        regions.tier(regions.primary(object)) == kFastest) {
      evict_down(regions, object);
    }
  }

 private:
  terrace::Bytes limit_;
};

}  // namespace

int main() try {
  std::vector<std::unique_ptr<terrace::Tier>> tiers;
  tiers.push_back(terrace::open_tier("dram:8MiB").value());
  tiers.push_back(terrace::open_tier("dram:64MiB").value());
  terrace::Manager manager(std::move(tiers), std::make_unique<SmallFirst>(1_MiB));

  terrace::array<int> small(manager, 1000, 1);
  terrace::array<int> large(manager, 1'000'000, 2);
  std::printf("small begins on tier %u, large on tier %u\n", manager.where(small.object()).index,
              manager.where(large.object()).index);
  large.will_write();
  std::printf("about to be written, large is on tier %u\n", manager.where(large.object()).index);
  large.write()[0] = 3;
  large.archive();
  std::printf("archived, large is on tier %u and begins with %d\n", manager.where(large.object()).index,
              large.read()[0]);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
