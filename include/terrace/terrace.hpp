// SPDX-License-Identifier: Apache-2.0
// Everything a program needs to keep data larger than its fast memory.
#pragma once

#include "terrace/array.hpp"
#include "terrace/error.hpp"
#include "terrace/manager.hpp"
#include "terrace/recency_policy.hpp"
#include "terrace/version.hpp"
