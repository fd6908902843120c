// The command line: options with a value each, checked, and one line for what is wrong.
#ifndef OPTIONS_H
#define OPTIONS_H

#include <cstdlib>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>

namespace options {

// Ends the process with exit 2: which option, what it got, what is allowed.
[[noreturn]] inline void Refuse(const std::string& name, const std::string& got, const std::string& allowed) {
  std::cerr << name << ": got " << got << ", allowed: " << allowed << "\n";
  std::exit(2);
}

// A number in a range.
inline double Number(const std::string& name, const std::string& value, double least, double most) {
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != '\0' || !(number >= least && number <= most)) {
    std::ostringstream allowed;
    allowed.precision(12);
    allowed << least << " to " << most;
    Refuse(name, value, allowed.str());
  }
  return number;
}

// Gives every option to `take`, which says whether it knows it.
inline void Parse(int count, char** words, const std::function<bool(const std::string&, const std::string&)>& take) {
  for (int place = 1; place < count; place += 2) {
    const std::string name = words[place];
    if (place + 1 == count) Refuse(name, "nothing", "an option with a value");
    if (!take(name, words[place + 1])) Refuse(name, words[place + 1], "another option; see the top of the source");
  }
}

}  // namespace options

#endif
