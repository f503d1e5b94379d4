#include "backends/cpu/onednn_kernel.hpp"

#include "base/check.hpp"

namespace terrace::cpu {
namespace {

std::vector<Slot> slots_of(const Kernel& kernel, const Recipe& recipe) {
  std::vector<Slot> slots;
  for (const Binding& binding : recipe.bindings) {
    const std::size_t before = binding.side == Binding::Side::input ? 0 : kernel.inputs.size();
    slots.push_back({binding.argument, recipe.desc(binding.argument), before + binding.operand});
  }
  const std::size_t workspace = kernel.inputs.size() + kernel.outputs.size();
  if (recipe.own_scratch() > Bytes{}) {
    slots.push_back(
        {DNNL_ARG_SCRATCHPAD, recipe.primitive.query_md(dnnl::query::scratchpad_md, 0), workspace});
  }
  for (std::size_t i = 0; i < recipe.spares.size(); ++i) {
    const Spare& spare = recipe.spares[i];
    slots.push_back(
        {spare.argument, spare.desc, workspace, static_cast<std::ptrdiff_t>(recipe.offset(i).count)});
  }
  return slots;
}

}  // namespace

Primitive::Primitive(const dnnl::primitive_desc_base& desc, const std::vector<Slot>& slots)
    : primitive_(desc.get()), stream_(engine()), slots_(slots) {
  for (const Slot& slot : slots_) {
    memories_.push_back(dnnl::memory(slot.desc, engine(), DNNL_MEMORY_NONE));
    arguments_.push_back({slot.argument, memories_.back().get()});
  }
}

void Primitive::run(Operands operands) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    memories_[i].set_data_handle(operands[slots_[i].operand] + slots_[i].offset);
  }
  const auto status = dnnl_primitive_execute(primitive_.get(), stream_.get(),
                                             static_cast<int>(arguments_.size()), arguments_.data());
  check(status == dnnl_success, "a oneDNN primitive was given operands it does not take");
}

OneDnnKernel::OneDnnKernel(const Kernel& kernel, const Recipe& recipe, Extra before, Extra after)
    : before_(std::move(before)),
      after_(std::move(after)),
      primitive_(recipe.primitive, slots_of(kernel, recipe)) {}

void OneDnnKernel::run(Operands operands, const StepContext&) {
  if (before_) before_(operands);
  primitive_.run(operands);
  if (after_) after_(operands);
}

}  // namespace terrace::cpu
