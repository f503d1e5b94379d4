// SPDX-License-Identifier: Apache-2.0
// Which cores a thread may use.
#pragma once

namespace terrace {

/// Keeps the calling thread, and threads it starts from here on, on `count` of the cores it may use, from
/// number `first` of them on. Returns false, and changes nothing, where there are not as many or the system
/// refuses.
bool stay_on_cores(unsigned first, unsigned count);

}  // namespace terrace
