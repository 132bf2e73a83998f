#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "cmd/exit_codes.h"
#include "cmd/program.h"

int main(int argc, char** argv) {
  std::string what;
  try {
    return fuse::cmd::run_program(std::vector<std::string>(argv, argv + argc));
  } catch (const std::exception& error) {
    what = std::string(": ") + error.what();
  } catch (...) {
    what.clear();
  }
  std::cerr << "fuse: internal error" << what
            << "\n  this is a defect of fuse: please report it with the command that you ran\n";
  return fuse::cmd::defect;
}
