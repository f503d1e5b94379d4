#include "nn/models/training.hpp"

namespace terrace::zoo {
namespace {

constexpr std::string_view kGenerator = "generator.", kDiscriminator = "discriminator.";

class Adversaries {
 public:
  Adversaries(std::string_view name, const networks::DcganOptions& options)
      : net_(std::string(name)), options_(options) {}

  void step_discriminator(const Part& part, std::optional<Gradients>& sum) {
    const Value real =
        net_.input(part.name("image"), {part.batch, options_.channels, options_.side, options_.side});
    judge(part, "d_real", real, 1, kDiscriminator, sum);
    const Value noise = net_.input(part.name("noise"), {part.batch, options_.latent, 1, 1});
    fakes_.push_back(networks::dcgan_generator(net_, noise, options_));
    // Only the discriminator's weights are differentiated: the fake counts as given.
    judge(part, "d_fake", fakes_.back(), 0, kDiscriminator, sum);
  }

  /// What the generator left of all parts has waited for the discriminator's update, so that splitting the
  /// batch saves only the discriminator's share. pre: the discriminator's step was made for as many parts
  void step_generator(const std::vector<Part>& parts, std::optional<Gradients>& sum) {
    for (std::size_t i = 0; i < parts.size(); ++i) judge(parts[i], "g", fakes_[i], 1, kGenerator, sum);
  }

  void update(const std::optional<Gradients>& sum, const Optimizer& optimizer) {
    net_.update(*sum, optimizer);
  }

  Graph finish() && {
    Graph graph = std::move(net_).finish();
    name_results(graph, results_);
    return graph;
  }

 private:
  void judge(const Part& part, std::string_view loss, Value image, float target, std::string_view trained,
             std::optional<Gradients>& sum) {
    const Value logits = networks::dcgan_discriminator(net_, image, options_);
    const Value error = net_.binary_cross_entropy(logits, target, part.weight);
    accumulate(net_, sum, net_.backward({error}, trained));
    results_.push_back(part.name(loss));
  }

  Net net_;
  networks::DcganOptions options_;
  std::vector<Value> fakes_;
  std::vector<std::string> results_;
};

}  // namespace

Graph dcgan_graph(std::string_view name, const Step& step, const networks::DcganOptions& options) {
  Adversaries adversaries(name, options);
  const std::vector<Part> parts = parts_of(step);
  std::optional<Gradients> discriminator, generator;
  for (const Part& part : parts) adversaries.step_discriminator(part, discriminator);
  adversaries.update(discriminator, step.optimizer);
  adversaries.step_generator(parts, generator);
  adversaries.update(generator, step.optimizer);
  return std::move(adversaries).finish();
}

}  // namespace terrace::zoo
