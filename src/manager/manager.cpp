#include "terrace/manager.hpp"

#include "base/check.hpp"
#include "manager/core.hpp"
#include "terrace/error.hpp"

namespace terrace {
namespace {

std::vector<std::unique_ptr<Tier>> open_all(std::initializer_list<std::string_view> specs) {
  std::vector<std::unique_ptr<Tier>> tiers;
  for (const std::string_view spec : specs) tiers.push_back(open_tier(spec).value());
  return tiers;
}

}  // namespace

Pin::Pin(Pin&& other) noexcept
    : core_(std::exchange(other.core_, nullptr)),
      object_(other.object_),
      access_(other.access_),
      data_(other.data_),
      size_(other.size_),
      tier_(other.tier_) {}

Pin::~Pin() {
  if (core_ != nullptr) core_->unpin(*this);
}

Manager::Manager(std::vector<std::unique_ptr<Tier>> tiers, std::unique_ptr<Policy> policy,
                 MoverOptions options)
    : core_(std::make_unique<ManagerCore>(std::move(tiers), std::move(policy), std::move(options))) {}

Manager::Manager(std::initializer_list<std::string_view> specs, std::string_view policy, MoverOptions options)
    : Manager(open_all(specs), make_policy(policy).value(), std::move(options)) {}

Manager::~Manager() = default;

Result<ObjectId> Manager::create(Bytes size) {
  ManagerCore::Lock lock(core_->mutex);
  core_->reap(lock);
  return core_->create(lock, size);
}

void Manager::destroy(ObjectId id) {
  ManagerCore::Lock lock(core_->mutex);
  if (Object* object = core_->objects.find(id)) core_->end(id, *object);
}

Result<Pin> Manager::pin(ObjectId object, Access access) {
  ManagerCore::Lock lock(core_->mutex);
  core_->reap(lock);
  return core_->pin(lock, object, access);
}

void Manager::hint(ObjectId id, void (Policy::*method)(Regions&, ObjectId)) {
  ManagerCore::Lock lock(core_->mutex);
  try {
    core_->reap(lock);
    const Object* object = core_->objects.find(id);
    if (object == nullptr || object->ending || object->retired) return;
    Regions regions = core_->make_regions(lock);
    (core_->policy.get()->*method)(regions, id);
  } catch (const EnvironmentError&) {
    // The failure was recorded with the copy. The object is where it was, and a pin that needs it will throw.
  }
}

void Manager::hint(void (Policy::*method)(Regions&)) {
  ManagerCore::Lock lock(core_->mutex);
  try {
    core_->reap(lock);
    Regions regions = core_->make_regions(lock);
    (core_->policy.get()->*method)(regions);
  } catch (const EnvironmentError&) {
    // The failure was recorded with the copy, as above.
  }
}

void Manager::will_use(ObjectId object) { hint(object, &Policy::will_use); }
void Manager::will_read(ObjectId object) { hint(object, &Policy::will_read); }
void Manager::will_write(ObjectId object) { hint(object, &Policy::will_write); }
void Manager::archive(ObjectId object) { hint(object, &Policy::archive); }
void Manager::step_begin() { hint(&Policy::step_begin); }
void Manager::step_end() { hint(&Policy::step_end); }
void Manager::layer_end() { hint(&Policy::layer_end); }

void Manager::retire(ObjectId id) {
  hint(id, &Policy::retire);
  ManagerCore::Lock lock(core_->mutex);
  if (Object* object = core_->objects.find(id)) object->retired = true;
}

std::uint32_t Manager::tiers() const { return static_cast<std::uint32_t>(core_->tiers.size()); }
Tier& Manager::tier(TierId id) { return *core_->tiers.at(id.index); }

TierId Manager::where(ObjectId object) const {
  ManagerCore::Lock lock(core_->mutex);
  return core_->regions[core_->objects[object].primary].tier;
}

ManagerStatistics Manager::statistics() const {
  ManagerCore::Lock lock(core_->mutex);
  ManagerStatistics statistics;
  for (std::uint32_t from = 0; from < core_->tiers.size(); ++from) {
    statistics.tiers.push_back(core_->heaps[from].statistics());
    std::vector<LinkStatistics>& links = statistics.links.emplace_back();
    for (std::uint32_t to = 0; to < core_->tiers.size(); ++to) {
      links.push_back(core_->mover->statistics(TierId{from}, TierId{to}));
    }
  }
  statistics.objects = core_->objects.size();
  statistics.copies = core_->copies;
  statistics.evictions = core_->evictions;
  statistics.promotions = core_->promotions;
  statistics.failed_copies = core_->failed_copies;
  statistics.last_failure = core_->last_failure;
  statistics.waited = core_->waited;
  statistics.buffers = core_->mover->bounce_bytes();
  return statistics;
}

void Manager::observe(RegionObserver* observer) {
  ManagerCore::Lock lock(core_->mutex);
  core_->observer = observer;
}

void Manager::settle() {
  ManagerCore::Lock lock(core_->mutex);
  core_->wait_for_all(lock);
}

Result<void> Manager::validate() const {
  ManagerCore::Lock lock(core_->mutex);
  return core_->validate();
}

}  // namespace terrace
