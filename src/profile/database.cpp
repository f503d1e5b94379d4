// SPDX-License-Identifier: Apache-2.0
#include "profile/database.hpp"

namespace terrace {
namespace {

/// Long enough for another process to finish its write, short enough not to look like a hang.
constexpr int kBusyMilliseconds = 10000;

}  // namespace

Database::Database(const std::filesystem::path& path) {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &handle,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  handle_.reset(handle);
  if (code != SQLITE_OK) fail(code);
  sqlite3_busy_timeout(handle, kBusyMilliseconds);
}

void Database::fail(int code) const {
  const char* why = handle_ ? sqlite3_errmsg(handle_.get()) : sqlite3_errstr(code);
  throw DatabaseError(code & 0xFF, why);
}

void Database::execute(const char* sql) {
  const int code = sqlite3_exec(get(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code);
}

std::int64_t Database::number(const char* sql) {
  Statement statement(*this, sql);
  return statement.step() ? statement.integer(0) : 0;
}

std::string Database::text(const char* sql) {
  Statement statement(*this, sql);
  return statement.step() ? statement.text(0) : "";
}

Statement::Statement(const Database& database, const char* sql) : database_(database) {
  sqlite3_stmt* handle = nullptr;
  const int code = sqlite3_prepare_v2(database.get(), sql, -1, &handle, nullptr);
  handle_.reset(handle);
  if (code != SQLITE_OK) database.fail(code);
}

Statement& Statement::bound(int code) {
  if (code != SQLITE_OK) database_.fail(code);
  return *this;
}

Statement& Statement::bind(std::string_view text) {
  return bound(
      sqlite3_bind_text64(handle_.get(), next_++, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}
Statement& Statement::bind(double number) {
  return bound(sqlite3_bind_double(handle_.get(), next_++, number));
}
Statement& Statement::bind(std::int64_t number) {
  return bound(sqlite3_bind_int64(handle_.get(), next_++, number));
}

bool Statement::step() {
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) database_.fail(code);
  return false;
}

std::string Statement::text(int column) const {
  const auto* start = reinterpret_cast<const char*>(sqlite3_column_text(handle_.get(), column));
  return start == nullptr ? "" : std::string(start);
}

}  // namespace terrace
