// `terrace train`, in parts: what is asked (TrainRequest), what is made ready for it (TrainSetup), what
// happened (TrainRecord), and how that is told.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/interrupt.hpp"
#include "cli/progress.hpp"
#include "data/fashion_mnist.hpp"
#include "exec/training_data.hpp"
#include "terrace/models.hpp"

namespace terrace::cli {

struct TrainRequest {
  std::string model;
  ModelOptions options;
  std::string optimizer;  ///< empty: the one the network was published with
  std::int64_t steps = 20;
  std::uint64_t seed = 0;
  unsigned threads = 0;  ///< 0: as many as this process can keep busy
  std::optional<float> learning_rate;
  std::string schedule = "constant";
  std::string data = "synthetic", data_folder;
  bool evaluate = false;
  std::string save, load, json;  ///< files; empty: none
};

/// Everything training needs. The data borrow the pictures, so both stay where they are.
struct TrainSetup {
  std::int64_t batch = 1;
  float learning_rate = 0;
  std::unique_ptr<LabelledImages> pictures, test_pictures;
  std::unique_ptr<TrainingData> data;
  std::unique_ptr<Trainer> trainer;
};

/// Throws BadInput where something asked for is not there or does not fit, as early as it can be known.
TrainSetup set_up(const TrainRequest& request, ProgressLine& line);

struct TrainRecord {
  enum class End { complete, interrupted, diverged } end = End::complete;
  std::vector<double> step_seconds;  ///< of computing alone
  std::vector<float> loss;
  Seconds elapsed{};  ///< data and all
  std::optional<double> test_accuracy;

  std::size_t steps() const { return loss.size(); }
  double median_step_seconds() const;
};

TrainRecord train(const TrainRequest& request, TrainSetup& setup, const Interrupt& interrupt,
                  ProgressLine& line);

nlohmann::json to_json(const TrainRequest& request, const TrainSetup& setup, const TrainRecord& record);
void print_summary(const TrainRequest& request, const TrainSetup& setup, const TrainRecord& record);

}  // namespace terrace::cli
