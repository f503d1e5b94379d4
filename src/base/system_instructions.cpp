#include "base/system.hpp"

#if defined(__x86_64__)
#include <asm/prctl.h>
#include <cpuid.h>
#include <immintrin.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#endif

namespace terrace {

#if defined(__x86_64__)
namespace {

bool amx_advertised() {
  constexpr unsigned kTiles = 1U << 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kTiles) != 0;
}

struct alignas(64) TileConfig {
  unsigned char palette = 1;
  unsigned char start_row = 0;
  std::array<unsigned char, 14> reserved{};
  std::array<unsigned short, 16> row_bytes{64};
  std::array<unsigned char, 16> rows{16};
};
static_assert(sizeof(TileConfig) == 64);

__attribute__((target("amx-tile"))) void use_a_tile() {
  static const TileConfig config;
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_release();
}

// This runs in the child, so it may only make calls that are safe after a fork of a threaded process.
[[noreturn]] void try_amx_and_exit() {
  constexpr unsigned long kTileData = 18;  // the kernel's number of the state that AMX adds
  for (const int fault : {SIGILL, SIGSEGV, SIGBUS}) std::signal(fault, SIG_DFL);
  const rlimit no_core_file{0, 0};
  setrlimit(RLIMIT_CORE, &no_core_file);
  if (syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, kTileData) != 0) _exit(1);
  use_a_tile();
  _exit(0);
}

bool amx_works() {
  const pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) try_amx_and_exit();
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

InstructionSets probe_instruction_sets() {
  InstructionSets sets;
  sets.sse42 = __builtin_cpu_supports("sse4.2") != 0;
  sets.avx2 = __builtin_cpu_supports("avx2") != 0;
  sets.avx512f = __builtin_cpu_supports("avx512f") != 0;
  sets.avx512_bf16 = __builtin_cpu_supports("avx512bf16") != 0;
  sets.amx_advertised = amx_advertised();
  sets.amx_works = sets.amx_advertised && amx_works();
  return sets;
}
#else
InstructionSets probe_instruction_sets() { return {}; }
#endif

}  // namespace terrace
