// The built program as tests run it: in a folder of its own, its output kept.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "cli/temporary_tree.hpp"

namespace terrace::test {

struct Outcome {
  int code;
  std::string out, err;
};

class Program : public testing::Test {
 protected:
  /// On a busy computer any command may take long: stages are said only where a test asks for them.
  Outcome run(const std::string& arguments, const std::string& environment = "TERRACE_PROGRESS=off") {
    const std::string command = "cd " + work().string() + " && " + environment + " " TERRACE_PROGRAM " " + arguments + " > " +
                                (tree_.path() / "out").string() + " 2> " + (tree_.path() / "err").string();
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, tree_.read("out"), tree_.read("err")};
  }
  std::filesystem::path work() const {
    std::filesystem::create_directories(tree_.path() / "work");
    return tree_.path() / "work";
  }
  // Bad input: nothing on standard output, one line that starts with the program's name on the other.
  void expect_complaint(const std::string& arguments, const std::string& part) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_TRUE(outcome.err.starts_with("terrace: ")) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }

  TemporaryTree tree_;
};

}  // namespace terrace::test
