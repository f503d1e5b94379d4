// Kernels that are split together, because they share tensors that are kept in parts: by features those that
// touch a weight, its gradients and states, and the bias and statistics that go with it; by the batch those
// that touch activations too large to be put together between them.
#pragma once

#include <string>
#include <vector>

#include "nn/split_rules.hpp"

namespace terrace {

struct CutGroup {
  struct Kept {
    TensorId tensor;
    Share share;  ///< `kept` or `bits`
  };
  struct Kernel {
    KernelId kernel;
    Shares shares;  ///< none of them `either`
  };
  Way way = Way::features;
  std::int64_t rows = 0;  ///< features or samples: the extent that is cut
  std::vector<Kept> tensors;
  std::vector<Kernel> kernels;
  std::string obstacle;  ///< why they cannot be split; empty: they can
};

class Grouping {
 public:
  /// What is cut out and put together again, beside its parts, must fit in `limit`. `graph` must outlive
  /// this. pre: it is valid
  Grouping(const Graph& graph, Bytes limit);

  /// The kernels that must be split with one.
  CutGroup group_of(KernelId kernel, Way way) const;

 private:
  bool can_be_kept(TensorId tensor, Way way) const;
  Shares resolved(Shares shares, const Kernel& kernel, Way way) const;
  void add_kernel(CutGroup& group, KernelId kernel) const;
  void keep(CutGroup& group, const Operand& operand, Share share) const;
  void require_fitting(CutGroup& group, const CutGroup::Kernel& kernel) const;
  bool is_result(TensorId tensor) const;

  const Graph& graph_;
  Bytes limit_;
  std::vector<std::vector<KernelId>> users_;  ///< of each tensor, each once
};

}  // namespace terrace
