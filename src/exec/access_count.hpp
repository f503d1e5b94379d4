// AccessCount: how often each kernel of a step sweeps over each of its operands, counted around its run.
//
// While a kernel runs, the pages that belong to its operands alone are watched (page_watch.hpp); between
// kernels none is, so that what moves bytes meets no armed page. Where a tier's granularity is a page every
// operand owns all of its pages; where it is finer, neighbours share their first and last pages, which are
// not watched, and a small operand may own none. One thread at a time.
#pragma once

#include <memory>
#include <vector>

#include "exec/script.hpp"
#include "profile/access/page_watch.hpp"
#include "terrace/profile.hpp"

namespace terrace {

class AccessCount {
 public:
  /// Fails where PageWatch does. The graph outlives this.
  static Result<AccessCount> start(const Graph& graph);

  void before(const RunAction& run);
  void after(const RunAction& run);
  /// The mean of all runs of each kernel. What has no page of its own, or could not be watched, is as the
  /// graph says.
  KernelAccesses result() const;

 private:
  struct Sum {
    double reads = 0, writes = 0;  ///< how many sweeps, in all runs in which the operand was watched
    std::uint64_t pages = 0;
    std::uint32_t runs = 0;
  };

  AccessCount(const Graph& graph, std::unique_ptr<PageWatch> watch);
  static void add(Sum& sum, const PageAccesses& counted, std::uint64_t pages);

  const Graph& graph_;
  std::unique_ptr<PageWatch> watch_;
  std::vector<std::span<std::byte>> watched_;  // the operands of the kernel that runs
  std::vector<std::vector<Sum>> sums_;         // by kernel and operand
};

}  // namespace terrace
