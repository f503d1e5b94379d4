// SPDX-License-Identifier: Apache-2.0
#include "profile/store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <limits>
#include <system_error>

#include "profile/database.hpp"
#include "terrace/error.hpp"

namespace terrace {
namespace {

namespace fs = std::filesystem;

/// "Terr", in the file's header, tells our files from those of other programs.
constexpr std::int64_t kApplication = 0x54657272;
constexpr std::int64_t kVersion = 2;
constexpr const char* kSchema =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE IF NOT EXISTS kernel_time (kernel TEXT NOT NULL, compute TEXT NOT NULL, cold REAL NOT NULL,"
    " warm REAL NOT NULL, spread REAL NOT NULL, samples INTEGER NOT NULL,"
    " PRIMARY KEY (kernel, compute)) WITHOUT ROWID;";
/// Files from before accesses, placements and decisions were kept have no such tables: they are added at
/// opening.
constexpr const char* kLaterSchema =
    "CREATE TABLE IF NOT EXISTS kernel_access (kernel TEXT NOT NULL, compute TEXT NOT NULL,"
    " operand INTEGER NOT NULL, reads REAL NOT NULL, writes REAL NOT NULL, pages INTEGER NOT NULL,"
    " PRIMARY KEY (kernel, compute, operand)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS kernel_placement (kernel TEXT NOT NULL, compute TEXT NOT NULL,"
    " placement TEXT NOT NULL, cold REAL NOT NULL, warm REAL NOT NULL, spread REAL NOT NULL,"
    " samples INTEGER NOT NULL, PRIMARY KEY (kernel, compute, placement)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS decision (graph TEXT NOT NULL, compute TEXT NOT NULL, question TEXT NOT NULL,"
    " answer TEXT NOT NULL, PRIMARY KEY (graph, compute, question)) WITHOUT ROWID;";

[[noreturn]] void throw_failure(const fs::path& path, const std::string& why, int cause = 0) {
  throw EnvironmentError(
      fmt::format("the profile store {} failed: {}; check the disk, or choose another path", path.string(),
                  why),
      {"", path.string(), 0, cause});
}

/// Keeps other processes from opening the same file meanwhile: of two that find it damaged, the second would
/// move the first one's new file aside.
class OpeningLock {
 public:
  explicit OpeningLock(const fs::path& path)
      : descriptor_(::open((path.string() + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0 || flock(descriptor_, LOCK_EX) != 0) {
      const int cause = errno;
      throw_failure(path, std::generic_category().message(cause), cause);
    }
  }
  OpeningLock(const OpeningLock&) = delete;
  OpeningLock& operator=(const OpeningLock&) = delete;
  ~OpeningLock() { close(descriptor_); }

 private:
  int descriptor_;
};

void make_folder(const fs::path& path) {
  std::error_code error;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  if (error) throw_failure(path, error.message(), error.value());
}

/// Under a name that is not taken. A journal beside it is gone by now: SQLite plays it back on first reading.
std::string move_aside(const fs::path& path) {
  std::string aside = path.string() + ".damaged";
  for (int i = 2; fs::exists(aside); ++i) aside = fmt::format("{}.damaged-{}", path.string(), i);
  std::error_code error;
  fs::rename(path, aside, error);
  if (error) throw_failure(path, error.message(), error.value());
  return aside;
}

enum class Contents { ours, nothing, other_version, damaged, foreign };

Contents inspect(Database& database) {
  try {
    const std::int64_t application = database.number("PRAGMA application_id");
    const std::int64_t version = database.number("PRAGMA user_version");
    if (database.number("SELECT count(*) FROM sqlite_master") == 0) return Contents::nothing;
    if (application != kApplication) return Contents::foreign;
    if (version != kVersion) return Contents::other_version;
    return database.text("PRAGMA quick_check(1)") == "ok" ? Contents::ours : Contents::damaged;
  } catch (const DatabaseError& error) {
    if (error.is_damage()) return Contents::damaged;
    throw;
  }
}

void begin_new(Database& database) {
  database.execute(kSchema);
  database.execute(
      fmt::format("PRAGMA application_id={}; PRAGMA user_version={}; COMMIT;", kApplication, kVersion)
          .c_str());
}

/// What SQLite refuses once a file is open is the environment's doing.
template <class Work>
auto guarded(const fs::path& path, Work work) {
  try {
    return work();
  } catch (const DatabaseError& error) {
    throw_failure(path, error.what());
  }
}

bool can_be(const PlacedTime& time) {
  const auto is_time = [](Seconds s) { return std::isfinite(s.count()) && s.count() >= 0; };
  return is_time(time.cold) && is_time(time.warm) && is_time(time.spread);
}

/// cold, warm, spread and samples, in the columns of this order.
std::optional<PlacedTime> read_time(const Statement& row, std::int64_t least_samples) {
  PlacedTime time;
  time.cold = Seconds{row.real(0)};
  time.warm = Seconds{row.real(1)};
  time.spread = Seconds{row.real(2)};
  if (row.integer(3) < least_samples || row.integer(3) > std::numeric_limits<std::uint32_t>::max())
    return std::nullopt;
  time.samples = static_cast<std::uint32_t>(row.integer(3));
  return can_be(time) ? std::optional(time) : std::nullopt;
}

void bind_time(Statement& statement, const PlacedTime& time) {
  statement.bind(time.cold.count()).bind(time.warm.count()).bind(time.spread.count());
  statement.bind(std::int64_t{time.samples});
}

bool can_be(const Accesses& counted) {
  const auto is_count = [](double count) { return std::isfinite(count) && count >= 0; };
  return is_count(counted.reads) && is_count(counted.writes);
}

void remove_accesses(const Database& database, std::string_view kernel, std::string_view compute) {
  Statement remove(database, "DELETE FROM kernel_access WHERE kernel = ? AND compute = ?");
  remove.bind(kernel).bind(compute).step();
}

void insert_accesses(const Database& database, std::string_view kernel, std::string_view compute,
                     const std::vector<Accesses>& operands) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Statement insert(database,
                     "INSERT INTO kernel_access (kernel, compute, operand, reads, writes, pages)"
                     " VALUES (?, ?, ?, ?, ?, ?)");
    insert.bind(kernel).bind(compute).bind(static_cast<std::int64_t>(i));
    insert.bind(operands[i].reads).bind(operands[i].writes);
    insert.bind(static_cast<std::int64_t>(operands[i].pages)).step();
  }
}

}  // namespace

ProfileStore::ProfileStore(fs::path path, std::unique_ptr<Database> database, std::string note)
    : path_(std::move(path)), database_(std::move(database)), note_(std::move(note)) {}
ProfileStore::ProfileStore(ProfileStore&&) noexcept = default;
ProfileStore& ProfileStore::operator=(ProfileStore&&) noexcept = default;
ProfileStore::~ProfileStore() = default;

Result<ProfileStore> ProfileStore::open(const fs::path& path) try {
  if (fs::is_directory(path)) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("{} is a folder: name the file in it that the profile store should be", path.string())};
  }
  make_folder(path);
  const OpeningLock lock(path);
  auto database = std::make_unique<Database>(path);
  const Contents contents = inspect(*database);
  if (contents == Contents::foreign) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} is a database of another program: choose another path for the profile store",
                             path.string())};
  }
  std::string note;
  if (contents == Contents::damaged || contents == Contents::other_version) {
    database.reset();
    note =
        fmt::format("the profile store {} {}: it was moved to {} and a new one begun", path.string(),
                    contents == Contents::damaged ? "is damaged" : "is of another version", move_aside(path));
    database = std::make_unique<Database>(path);
  }
  if (contents != Contents::ours) begin_new(*database);
  database->execute(kLaterSchema);
  return ProfileStore(path, std::move(database), std::move(note));
} catch (const DatabaseError& error) {
  throw_failure(path, error.what());
}

std::optional<PlacedTime> ProfileStore::find(std::string_view kernel, std::string_view compute) const {
  return guarded(path_, [&]() -> std::optional<PlacedTime> {
    Statement select(*database_,
                     "SELECT cold, warm, spread, samples FROM kernel_time"
                     " WHERE kernel = ? AND compute = ?");
    if (!select.bind(kernel).bind(compute).step()) return std::nullopt;
    return read_time(select, 1);
  });
}

void ProfileStore::save(std::string_view kernel, std::string_view compute, const PlacedTime& time) {
  guarded(path_, [&] {
    Statement insert(*database_,
                     "INSERT OR REPLACE INTO kernel_time"
                     " (kernel, compute, cold, warm, spread, samples)"
                     " VALUES (?, ?, ?, ?, ?, ?)");
    bind_time(insert.bind(kernel).bind(compute), time);
    insert.step();
  });
}

template <class Work>
void ProfileStore::in_transaction(Work work) {
  guarded(path_, [&] {
    database_->execute("BEGIN IMMEDIATE;");
    try {
      work();
      database_->execute("COMMIT;");
    } catch (const DatabaseError&) {
      database_->execute("ROLLBACK;");
      throw;
    }
  });
}

std::optional<PlacedTime> ProfileStore::find_placed(std::string_view kernel, std::string_view compute,
                                                    std::string_view placement) const {
  return guarded(path_, [&]() -> std::optional<PlacedTime> {
    Statement select(*database_,
                     "SELECT cold, warm, spread, samples FROM kernel_placement"
                     " WHERE kernel = ? AND compute = ? AND placement = ?");
    if (!select.bind(kernel).bind(compute).bind(placement).step()) return std::nullopt;
    return read_time(select, 0);
  });
}

void ProfileStore::save_placed(std::string_view kernel, std::string_view compute,
                               const std::map<std::string, PlacedTime>& times) {
  in_transaction([&] {
    for (const auto& [placement, time] : times) {
      Statement insert(*database_,
                       "INSERT OR REPLACE INTO kernel_placement"
                       " (kernel, compute, placement, cold, warm, spread, samples)"
                       " VALUES (?, ?, ?, ?, ?, ?, ?)");
      bind_time(insert.bind(kernel).bind(compute).bind(placement), time);
      insert.step();
    }
  });
}

std::vector<Accesses> ProfileStore::find_accesses(std::string_view kernel, std::string_view compute) const {
  return guarded(path_, [&]() -> std::vector<Accesses> {
    Statement select(*database_,
                     "SELECT operand, reads, writes, pages FROM kernel_access"
                     " WHERE kernel = ? AND compute = ? ORDER BY operand");
    select.bind(kernel).bind(compute);
    std::vector<Accesses> operands;
    while (select.step()) {
      const Accesses counted{select.real(1), select.real(2), static_cast<std::uint64_t>(select.integer(3))};
      const bool is_next = select.integer(0) == static_cast<std::int64_t>(operands.size());
      if (!is_next || select.integer(3) < 0 || !can_be(counted)) return {};
      operands.push_back(counted);
    }
    return operands;
  });
}

void ProfileStore::save_accesses(std::string_view kernel, std::string_view compute,
                                 const std::vector<Accesses>& operands) {
  in_transaction([&] {
    remove_accesses(*database_, kernel, compute);
    insert_accesses(*database_, kernel, compute, operands);
  });
}

std::optional<std::string> ProfileStore::find_decision(std::string_view graph, std::string_view compute,
                                                       std::string_view question) const {
  return guarded(path_, [&]() -> std::optional<std::string> {
    Statement select(*database_,
                     "SELECT answer FROM decision WHERE graph = ? AND compute = ? AND question = ?");
    if (!select.bind(graph).bind(compute).bind(question).step()) return std::nullopt;
    return select.text(0);
  });
}

void ProfileStore::save_decision(std::string_view graph, std::string_view compute, std::string_view question,
                                 std::string_view answer) {
  guarded(path_, [&] {
    Statement insert(
        *database_, "INSERT OR REPLACE INTO decision (graph, compute, question, answer) VALUES (?, ?, ?, ?)");
    insert.bind(graph).bind(compute).bind(question).bind(answer).step();
  });
}

}  // namespace terrace
