// Which tensors are discarded after forward and made again before they are needed backward.
//
//   segment      kernels of the forward pass between two cuts, whose tensors are made again together
//   checkpoint   what is used beyond a cut: it is kept, or moved, as any tensor
//
// Dropped first is what kernels make in the least time for what it would cost to keep or move it, by the
// prices of the bound. All that a segment makes again is there at once, so segments are cut where they would
// make too much, with the least bytes of checkpoints.
#pragma once

#include <cstdint>
#include <vector>

#include "bounds/path.hpp"
#include "planners/best/recompute_rewrite.hpp"

namespace terrace::best {

class Checkpoints {
 public:
  /// Borrows all but the prices, which are of the problem, and that of the request.
  Checkpoints(const PlanRequest& request, const StepUses& uses, const bounds::Problem& problem,
              const bounds::Multipliers& multipliers);
  Checkpoints(const Checkpoints&) = delete;

  struct Choice {
    double segment = 0;  ///< bytes that a segment makes at most
    double amount = 0;   ///< of all bytes worth dropping, the share that is, unless it is a checkpoint
    double step = 0;     ///< seconds, by a rough estimate
  };
  /// About so many or fewer, the least step first. None where everything fits.
  std::vector<Choice> choices(std::uint64_t count) const;
  /// By tensor.
  std::vector<DiscardWindow> discarded(const Choice& choice) const;

 private:
  /// A tensor that could be discarded.
  struct Candidate {
    TensorId tensor;
    DiscardWindow window;
    std::uint32_t made = 0;  ///< the first kernel that writes it
    double bytes = 0;
    const Candidate* leader = nullptr;  ///< another output of its kernel that is discarded or kept with it
    double making = 0;                  ///< seconds, with what only that needs
    double keeping = 0;                 ///< seconds, with those it leads
    double amount = 2;                  ///< the least of a choice that drops it; above 1: none does
    bool is_saved() const { return window.until != kNever; }
    bool is_discarded_at(std::uint32_t kernel) const {
      return window.after < kernel && kernel < window.until;
    }
    double price() const { return making / keeping; }
    bool is_in(const Choice& choice) const { return !is_saved() || amount <= choice.amount; }
  };
  void find_peak();
  void find_candidates();
  void count_passes();
  void find_leaders();
  void price_making();
  void price_keeping(const bounds::Multipliers& multipliers);
  void find_amounts();
  std::vector<bool> cuts(const Choice& choice) const;
  std::vector<const Candidate*> within(const Choice& choice) const;
  double estimate(const Choice& choice) const;

  const PlanRequest& request_;
  const StepUses& uses_;
  const bounds::Problem& problem_;
  std::size_t tensors_;
  std::vector<Candidate> candidates_;       ///< by the kernel that makes them
  std::vector<Candidate*> of_;              ///< by tensor, or null
  std::vector<std::uint32_t> full_before_;  ///< each kernel: how many have more live bytes than fit
  std::uint32_t peak_ = 0;                  ///< the kernel with most live bytes
  double forward_ = 0;                      ///< seconds of all forward kernels
  double passes_ = 1;                       ///< all that is saved forward, over what is saved then
};

}  // namespace terrace::best
