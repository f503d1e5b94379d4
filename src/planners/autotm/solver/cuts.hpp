// SPDX-License-Identifier: Apache-2.0
// Inequalities of the overlap that are found when shares of moves and configurations break them.
//
// What a step takes for a kernel and the moves beside it, max{time, moves}, is at least a charge for each
// move and the rest for its configuration, where that is the least over all sets of moves of max{time, moves}
// less their charges. Those of relaxation.hpp are of this kind, with charges that depend on nothing but the
// move's time. Here charges come from shares (envelope.hpp): moves that do not fit beside a kernel together
// seem to fit in parts. Each holds for every solution, so that a bound may mix those of a kernel.
#pragma once

#include <vector>

#include "planners/autotm/solver/envelope.hpp"
#include "planners/autotm/solver/flat.hpp"

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
    std::uint32_t less;        ///< in less(), for the first of the kernel's configurations
  };

  explicit Cuts(const Flat& flat);

  /// Adds what these shares of edges and configurations break most, at most one for a kernel. Returns how
  /// many it added.
  std::size_t find(const std::vector<double>& edges, const std::vector<double>& configurations);

  /// Adds those of another reduction of the same problem, each for the moves and configurations that are
  /// here. `edges`: by edge, which it is there, or kNone.
  void adopt(const Cuts& other, const std::vector<std::uint32_t>& edges);

  std::size_t size() const { return cuts_.size(); }
  const std::vector<Cut>& all() const { return cuts_; }
  const std::vector<Term>& terms() const { return terms_; }
  /// By inequality and configuration: how much of the configuration's time the inequality leaves out.
  const std::vector<double>& less() const { return less_; }
  const std::vector<std::uint32_t>& of(std::uint32_t kernel) const { return by_kernel_[kernel]; }

  /// Adds so much of a cut to what edges are charged and configurations do without.
  void charge(const Cut& cut, double price, std::vector<double>& charges, std::vector<double>& less) const;
  /// Returns by how much shares break the inequality if only the configurations' times counted.
  double violation(const Cut& cut, const std::vector<double>& edges,
                   const std::vector<double>& configurations) const;

 private:
  /// The edges by which one tensor can move beside one kernel; a path takes at most one of them.
  struct Moves {
    double time, slower;       ///< as Flat::Hidden has them
    std::uint32_t first, end;  ///< of edges_
  };
  /// The shares at one kernel.
  struct Point {
    std::vector<const Moves*> taken;
    std::vector<Part> moves, configurations;
    double known = 0;  ///< the time that the inequalities found so far prove
  };

  void list_moves(const Flat::Tensor& tensor);
  bool find_one(std::uint32_t kernel, const std::vector<double>& edges,
                const std::vector<double>& configurations);
  double share(const Moves& moves, const std::vector<double>& edges) const;
  void take_moves(std::uint32_t kernel, const std::vector<double>& edges);
  void take_configurations(std::uint32_t kernel, const std::vector<double>& configurations);
  void see_known(std::uint32_t kernel, const std::vector<double>& edges,
                 const std::vector<double>& configurations);
  void add(std::uint32_t kernel, const std::vector<double>& charges);

  const Flat& flat_;
  std::vector<std::vector<Moves>> moves_;  ///< by kernel
  std::vector<std::uint32_t> edges_;
  std::vector<Cut> cuts_;
  std::vector<Term> terms_;
  std::vector<double> less_;
  std::vector<std::vector<std::uint32_t>> by_kernel_;
  Envelope envelope_;
  Point point_;
  double least_ = 0;  ///< the smallest violation that counts
};

}  // namespace terrace::autotm
