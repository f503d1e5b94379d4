// SPDX-License-Identifier: Apache-2.0
// The reference itself may be missing or broken: then tests fail with a sentence, and at once.
#include <gtest/gtest.h>

#include <fstream>

#include "support/torch.hpp"

namespace terrace {
namespace {

/// What a conversation with this script ends in.
std::string complaint(const std::string& script, TorchServer::Options options = {}) {
  const TemporaryFolder folder;
  options.script = folder / "server.py";
  std::ofstream(options.script) << script;
  try {
    TorchServer(options).ask({{"describe", "mlp"}});
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(TorchServer, NamesThePackageWhereTheInterpreterIsMissing) {
  const std::string text = complaint("", {.python = "/nowhere/python3"});
  EXPECT_TRUE(holds(text, "/nowhere/python3") && holds(text, "python3-torch")) << text;
}

TEST(TorchServer, NamesThePackageWhereTheServerEnds) {
  const std::string text = complaint("raise SystemExit(1)");
  EXPECT_TRUE(holds(text, "ended") && holds(text, "python3-torch")) << text;
}

TEST(TorchServer, ShowsWhatIsNoAnswer) {
  const std::string text = complaint("input(); print('hello', flush=True); input()");
  EXPECT_TRUE(holds(text, "hello")) << text;
}

TEST(TorchServer, PassesOnWhatTheServerRefuses) {
  const std::string text = complaint("input(); print('{\"error\": \"never\"}', flush=True); input()");
  EXPECT_TRUE(holds(text, "never")) << text;
}

TEST(TorchServer, DoesNotWaitForEver) {
  const std::string text =
      complaint("import time; time.sleep(1000)", {.patience = std::chrono::milliseconds(50)});
  EXPECT_TRUE(holds(text, "did not answer")) << text;
}

}  // namespace
}  // namespace terrace
