#include "orchestrator/postgres.h"

#include <libpq-fe.h>

#include <array>
#include <charconv>

#include "base/text.h"

namespace fuse {

namespace {

// Types of columns, from the server's catalogue (pg_type.dat).
constexpr Oid bytea_type = 17;
constexpr Oid int8_type = 20;
constexpr Oid int2_type = 21;
constexpr Oid int4_type = 23;

constexpr std::string_view unique_violation = "23505";
constexpr std::array<std::string_view, 3> worth_repeating = {
    "40001",  // serialization_failure
    "40P01",  // deadlock_detected
    "55P03",  // lock_not_available
};

struct FinishConnection {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
struct ClearResult {
  void operator()(PGresult* result) const { PQclear(result); }
};
struct FreeMemory {
  void operator()(void* memory) const { PQfreemem(memory); }
};
struct FreeOptions {
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};
using Connection = std::unique_ptr<PGconn, FinishConnection>;
using Answer = std::unique_ptr<PGresult, ClearResult>;
using Options = std::unique_ptr<PQconninfoOption, FreeOptions>;

// One line, as the server's messages end in line breaks.
std::string one_line(const char* message) {
  std::string text(trim(message == nullptr ? "" : message));
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

Error unavailable(std::string message, const char* reason) {
  return {ErrorCode::unavailable, std::move(message), {{"reason", reason}}};
}

// Parameters as libpq takes them: texts, and bytes in the binary form.
class Parameters {
 public:
  explicit Parameters(const std::vector<SqlValue>& values) {
    texts_.reserve(values.size());
    for (const SqlValue& value : values) add(value);
  }
  [[nodiscard]] int count() const { return static_cast<int>(values_.size()); }
  [[nodiscard]] const char* const* values() const { return values_.data(); }
  [[nodiscard]] const int* lengths() const { return lengths_.data(); }
  [[nodiscard]] const int* formats() const { return formats_.data(); }

 private:
  void add(const SqlValue& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      texts_.push_back(std::to_string(*number));
      return push(texts_.back().c_str(), 0, 0);
    }
    if (const auto* text = std::get_if<std::string>(&value)) return push(text->c_str(), 0, 0);
    if (const auto* blob = std::get_if<SqlBlob>(&value)) {
      return push(blob->bytes.data(), static_cast<int>(blob->bytes.size()), 1);
    }
    push(nullptr, 0, 0);
  }
  void push(const char* value, int length, int format) {
    values_.push_back(value);
    lengths_.push_back(length);
    formats_.push_back(format);
  }

  std::vector<std::string> texts_{};  // never grows beyond what was reserved
  std::vector<const char*> values_{};
  std::vector<int> lengths_{};
  std::vector<int> formats_{};
};

SqlValue read_value(const PGresult* answer, int row, int column) {
  if (PQgetisnull(answer, row, column) != 0) return std::monostate();
  const char* const text = PQgetvalue(answer, row, column);
  const auto size = static_cast<std::size_t>(PQgetlength(answer, row, column));
  switch (PQftype(answer, column)) {
    case int2_type:
    case int4_type:
    case int8_type: {
      std::int64_t number = 0;
      std::from_chars(text, text + size, number);
      return number;
    }
    case bytea_type: {
      std::size_t length = 0;
      const std::unique_ptr<unsigned char, FreeMemory> bytes(
          PQunescapeBytea(reinterpret_cast<const unsigned char*>(text), &length));
      if (bytes == nullptr) return SqlBlob{};
      return SqlBlob{std::string(reinterpret_cast<const char*>(bytes.get()), length)};
    }
    default:
      return std::string(text, size);
  }
}

class PostgresConnection final : public SqlConnection {
 public:
  PostgresConnection(Connection connection, std::string place)
      : connection_(std::move(connection)), place_(std::move(place)) {}

  Result<std::vector<SqlRow>> query(std::string_view sql,
                                    const std::vector<SqlValue>& parameters) override;
  Result<std::int64_t> execute(std::string_view sql,
                               const std::vector<SqlValue>& parameters) override;
  Result<void> begin() override { return run("BEGIN ISOLATION LEVEL READ COMMITTED"); }
  Result<void> commit() override;
  Result<void> rollback() override { return run("ROLLBACK"); }
  [[nodiscard]] std::string_view blob_type() const override { return "BYTEA"; }
  [[nodiscard]] std::string_view row_lock() const override { return " FOR UPDATE"; }
  Result<void> lock_schema() override;
  Result<void> keep_copy(std::string_view /*label*/) override { return {}; }
  [[nodiscard]] bool usable() const override {
    return PQstatus(connection_.get()) == CONNECTION_OK;
  }

  Result<void> run(std::string_view sql) {
    if (auto done = execute(sql, {}); !done) return done.error();
    return {};
  }

 private:
  Result<Answer> ask(std::string_view sql, const std::vector<SqlValue>& parameters);
  [[nodiscard]] Error error_of(const PGresult* answer, std::string_view sql) const;

  Connection connection_;
  std::string place_;
};

Error PostgresConnection::error_of(const PGresult* answer, std::string_view sql) const {
  const char* const found = PQresultErrorField(answer, PG_DIAG_SQLSTATE);
  const std::string_view state = found == nullptr ? std::string_view() : found;
  const std::string message = one_line(PQerrorMessage(connection_.get()));
  if (!usable() || state.starts_with("57P")) {  // the server is shutting down
    return unavailable(cat("database ", place_, ": ", message), "store");
  }
  if (state == unique_violation) {
    return {ErrorCode::conflict, cat("database: ", message), {{"reason", "unique"}}};
  }
  for (const std::string_view code : worth_repeating) {
    if (state == code) return unavailable(cat("database: ", message), "busy");
  }
  return {ErrorCode::internal, cat("database: ", sql.substr(0, 60), ": ", message)};
}

Result<Answer> PostgresConnection::ask(std::string_view sql,
                                       const std::vector<SqlValue>& parameters) {
  const Parameters given(parameters);
  Answer answer(PQexecParams(connection_.get(), std::string(sql).c_str(), given.count(), nullptr,
                             given.values(), given.lengths(), given.formats(), 0));
  const ExecStatusType status = PQresultStatus(answer.get());
  if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) return answer;
  return error_of(answer.get(), sql);
}

Result<std::vector<SqlRow>> PostgresConnection::query(std::string_view sql,
                                                      const std::vector<SqlValue>& parameters) {
  const auto answer = ask(sql, parameters);
  if (!answer) return answer.error();
  const PGresult* const rows = answer->get();
  auto names = std::make_shared<std::vector<std::string>>();
  const int columns = PQnfields(rows);
  for (int i = 0; i < columns; ++i) names->emplace_back(PQfname(rows, i));
  std::vector<SqlRow> out;
  for (int row = 0; row < PQntuples(rows); ++row) {
    std::vector<SqlValue> values;
    values.reserve(static_cast<std::size_t>(columns));
    for (int i = 0; i < columns; ++i) values.push_back(read_value(rows, row, i));
    out.emplace_back(names, std::move(values));
  }
  return out;
}

Result<std::int64_t> PostgresConnection::execute(std::string_view sql,
                                                 const std::vector<SqlValue>& parameters) {
  const auto answer = ask(sql, parameters);
  if (!answer) return answer.error();
  return parse_int(PQcmdTuples(answer->get())).value_or(0);
}

Result<void> PostgresConnection::commit() {
  auto done = run("COMMIT");
  if (done) return done;
  Error error = done.error();
  const auto reason = error.details.find("reason");
  if (reason != error.details.end() && reason->second == "store") reason->second = "commit";
  return error;
}

// One replica at a time brings the schema up to date.
Result<void> PostgresConnection::lock_schema() {
  constexpr std::int64_t any_number_of_ours = 0x66757365;  // "fuse"
  auto locked = query("SELECT pg_advisory_xact_lock($1)", {any_number_of_ours});
  if (!locked) return locked.error();
  return {};
}

Result<Options> parse_options(const std::string& uri) {
  char* message = nullptr;
  Options options(PQconninfoParse(uri.c_str(), &message));
  const std::unique_ptr<char, FreeMemory> held(message);
  if (options != nullptr) return options;
  // Its own message may quote the password.
  return Error{ErrorCode::invalid_argument,
               "DATABASE_URL is no address of a PostgreSQL database, such as "
               "postgresql://USER:PASSWORD@HOST/DATABASE"};
}

std::string option(const Options& options, std::string_view name) {
  for (const PQconninfoOption* one = options.get(); one->keyword != nullptr; ++one) {
    if (name == one->keyword && one->val != nullptr) return one->val;
  }
  return "";
}

}  // namespace

Result<std::string> postgres_place(const std::string& uri) {
  const auto options = parse_options(uri);
  if (!options) return options.error();
  const std::string host = option(*options, "host");
  const std::string port = option(*options, "port");
  return cat(host.empty() ? "localhost" : host, port.empty() ? "" : cat(':', port), '/',
             option(*options, "dbname"));
}

Result<std::unique_ptr<SqlConnection>> open_postgres(const std::string& uri) {
  auto place = postgres_place(uri);
  if (!place) return place.error();
  const std::array<const char*, 6> names = {"dbname",           "connect_timeout",
                                            "client_encoding",  "application_name",
                                            "tcp_user_timeout", nullptr};
  // What the address says itself goes before these but for the encoding.
  const std::array<const char*, 6> values = {uri.c_str(), "10", "UTF8", "fuse", "30000", nullptr};
  Connection connection(PQconnectdbParams(names.data(), values.data(), 1));
  if (PQstatus(connection.get()) != CONNECTION_OK) {
    return unavailable(cat("database ", *place, ": ", one_line(PQerrorMessage(connection.get()))),
                       "store");
  }
  PQsetNoticeProcessor(
      connection.get(), [](void* /*unused*/, const char* /*message*/) {}, nullptr);
  auto made = std::make_unique<PostgresConnection>(std::move(connection), *std::move(place));
  // A transaction that nobody ends must not hold its locks for ever.
  for (const std::string_view setting : {"SET synchronous_commit = on", "SET lock_timeout = '10s'",
                                         "SET idle_in_transaction_session_timeout = '60s'"}) {
    if (auto done = made->run(setting); !done) return done.error();
  }
  return std::unique_ptr<SqlConnection>(std::move(made));
}

}  // namespace fuse
