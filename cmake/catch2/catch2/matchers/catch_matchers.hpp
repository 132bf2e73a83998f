#pragma once
#include "catch2/catch_version_2.hpp"
