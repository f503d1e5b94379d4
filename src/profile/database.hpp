// SPDX-License-Identifier: Apache-2.0
// A SQLite file and statements on it. Move-only; what SQLite refuses is thrown as DatabaseError.
#pragma once

#include <sqlite3.h>

#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace terrace {

class DatabaseError : public std::runtime_error {
 public:
  DatabaseError(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
  /// The file is no database, or no longer one.
  bool is_damage() const { return code_ == SQLITE_CORRUPT || code_ == SQLITE_NOTADB; }

 private:
  int code_;
};

class Database {
 public:
  /// Opens or creates the file.
  explicit Database(const std::filesystem::path& path);

  /// Runs statements that return nothing.
  void execute(const char* sql);
  /// The first column of the first row.
  std::int64_t number(const char* sql);
  std::string text(const char* sql);

  sqlite3* get() const { return handle_.get(); }
  [[noreturn]] void fail(int code) const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };
  std::unique_ptr<sqlite3, Close> handle_;
};

/// One statement: values are bound from the left, rows are read after step().
class Statement {
 public:
  Statement(const Database& database, const char* sql);

  Statement& bind(std::string_view text);
  Statement& bind(double number);
  Statement& bind(std::int64_t number);
  /// Returns whether there is a row.
  bool step();
  double real(int column) const { return sqlite3_column_double(handle_.get(), column); }
  std::int64_t integer(int column) const { return sqlite3_column_int64(handle_.get(), column); }
  std::string text(int column) const;

 private:
  Statement& bound(int code);
  struct Finalize {
    void operator()(sqlite3_stmt* handle) const { sqlite3_finalize(handle); }
  };
  const Database& database_;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
  int next_ = 1;
};

}  // namespace terrace
