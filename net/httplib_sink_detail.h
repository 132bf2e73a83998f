#pragma once

#include <httplib.h>

#include <stop_token>
#include <string_view>
#include <utility>

#include "net/http.h"
#include "net/httplib_stream_detail.h"

namespace fuse {

// An answer's stream on a connection; each write goes out at once.
class HttplibSink final : public HttpStream {
 public:
  HttplibSink(httplib::DataSink& sink, HttplibStream& wire, std::stop_token stop)
      : sink_(sink), wire_(wire), stop_(std::move(stop)) {}

  bool write(std::string_view bytes) override {
    if (stop_.stop_requested()) whole_ = false;
    // To httplib no bytes are the end.
    if (!whole_ || bytes.empty()) return whole_;
    whole_ = sink_.write(bytes.data(), bytes.size()) && wire_.flush();
    return whole_;
  }
  [[nodiscard]] std::stop_token stop() const override { return stop_; }

  // The end mark; false when the answer was cut short and must not look whole.
  bool finish() {
    if (!whole_ || stop_.stop_requested()) return false;
    sink_.done();
    return true;
  }

 private:
  httplib::DataSink& sink_;
  HttplibStream& wire_;
  std::stop_token stop_;
  bool whole_ = true;
};

}  // namespace fuse
