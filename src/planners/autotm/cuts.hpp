// Inequalities of the overlap that are found when shares of moves and configurations break them.
//
// What a step takes for a kernel and the moves beside it, max{time, moves}, is at least the sum of what is
// charged for each move and of the rest for its configuration, where that is the least over all sets of moves
// of max{time, moves} - charges. The inequalities of relaxation.hpp are of this kind, the same for all moves;
// the charges of these come from shares (envelope.hpp): moves that do not fit beside a kernel together seem
// to fit in parts. Every inequality is one of all solutions, and a bound may mix those of a kernel.
#pragma once

#include <vector>

#include "planners/autotm/envelope.hpp"
#include "planners/autotm/flat.hpp"

namespace terrace::autotm {

class Cuts {
 public:
  struct Term {
    std::uint32_t edge;
    double charge;
  };
  struct Cut {
    std::uint32_t kernel;
    std::uint32_t first, end;  ///< of terms
    std::uint32_t less;        ///< the first of its kernel's configurations
  };

  explicit Cuts(const Flat& flat);

  /// Adds those that these shares of edges and configurations break most, one for a kernel. How many.
  std::size_t find(const std::vector<double>& edges, const std::vector<double>& configurations);

  std::size_t size() const { return cuts_.size(); }
  const std::vector<Cut>& all() const { return cuts_; }
  const std::vector<Term>& terms() const { return terms_; }
  /// By configuration of a cut: what of its time the inequality does without.
  const std::vector<double>& less() const { return less_; }
  /// Adds so much of a cut to what is charged for edges and to what configurations do without.
  void charge(const Cut& cut, double price, std::vector<double>& charges, std::vector<double>& less) const {
    if (price == 0) return;
    for (std::uint32_t t = cut.first; t < cut.end; ++t) charges[terms_[t].edge] += price * terms_[t].charge;
    const Flat::Kernel& kernel = flat_.kernels[cut.kernel];
    for (std::uint32_t c = kernel.first; c < kernel.end; ++c)
      less[c] += price * less_[cut.less + c - kernel.first];
  }
  /// By how much shares break it.
  double broken(const Cut& cut, const std::vector<double>& edges,
                const std::vector<double>& configurations) const {
    double sum = 0;
    for (std::uint32_t t = cut.first; t < cut.end; ++t) sum += terms_[t].charge * edges[terms_[t].edge];
    const Flat::Kernel& kernel = flat_.kernels[cut.kernel];
    for (std::uint32_t c = kernel.first; c < kernel.end; ++c)
      sum -= configurations[c] * less_[cut.less + c - kernel.first];
    return sum;
  }
  const std::vector<std::uint32_t>& of(std::uint32_t kernel) const { return by_kernel_[kernel]; }

 private:
  /// A tensor's, beside one kernel: edges of which a path takes one at most.
  struct Moves {
    double time;
    std::uint32_t first, end;  ///< of edges_
  };

  void list_moves();
  bool find(std::uint32_t kernel, const std::vector<double>& edges,
            const std::vector<double>& configurations);
  double share(const Moves& moves, const std::vector<double>& edges) const;
  /// What the shares take at least by the inequalities so far.
  double known(std::uint32_t kernel, const std::vector<double>& edges,
               const std::vector<double>& configurations, double whole) const;
  void add(std::uint32_t kernel, const std::vector<const Moves*>& moves, const std::vector<double>& charges);

  const Flat& flat_;
  std::vector<std::vector<Moves>> moves_;  ///< by kernel
  std::vector<std::uint32_t> edges_;
  std::vector<Cut> cuts_;
  std::vector<Term> terms_;
  std::vector<double> less_;
  std::vector<std::vector<std::uint32_t>> by_kernel_;
  Envelope envelope_;
  double least_ = 0;  ///< that an inequality is broken by
};

}  // namespace terrace::autotm
