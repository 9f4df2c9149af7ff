// toml++, whose headers Debian has, behind a function that C can call.
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
// Nodes are read and freed by recursion. Settings have three levels.
#define TOML_MAX_NESTED_VALUES 32
#include <toml++/toml.h>

#include "CTOML.h"

namespace {

struct Reader {
  void *context;
  void (*read)(void *, const apnscope_toml_item *);

  // The depth of nodes is limited by the parser.
  void visit(const toml::node &node, std::string_view key) const {
    apnscope_toml_item item = {};
    item.key = key.data();
    item.key_length = key.size();
    if (const auto *table = node.as_table()) {
      item.event = APNSCOPE_TOML_TABLE;
      read(context, &item);
      for (const auto &[name, value] : *table) visit(value, name.str());
      end();
    } else if (const auto *array = node.as_array()) {
      item.event = APNSCOPE_TOML_ARRAY;
      read(context, &item);
      for (const auto &value : *array) visit(value, {});
      end();
    } else {
      if (const auto *text = node.as_string()) {
        item.event = APNSCOPE_TOML_TEXT;
        item.text = text->get().data();
        item.text_length = text->get().size();
      } else if (const auto *integer = node.as_integer()) {
        item.event = APNSCOPE_TOML_INTEGER;
        item.integer = integer->get();
      } else if (const auto *real = node.as_floating_point()) {
        item.event = APNSCOPE_TOML_REAL;
        item.real = real->get();
      } else if (const auto *boolean = node.as_boolean()) {
        item.event = APNSCOPE_TOML_BOOLEAN;
        item.integer = boolean->get();
      } else {
        item.event = APNSCOPE_TOML_OTHER;
      }
      read(context, &item);
    }
  }

  void end() const {
    apnscope_toml_item item = {};
    item.event = APNSCOPE_TOML_END;
    read(context, &item);
  }
};

}  // namespace

extern "C" int apnscope_toml_read(const char *text, size_t length, void *context,
                                  void (*reader)(void *, const apnscope_toml_item *), apnscope_toml_error *error) {
  const toml::parse_result result = toml::parse(std::string_view(text, length));
  if (!result) {
    const auto &source = result.error().source().begin;
    error->line = source.line;
    error->column = source.column;
    const auto description = result.error().description();
    const size_t count = std::min(description.size(), sizeof error->description - 1);
    description.copy(error->description, count);
    error->description[count] = 0;
    return -1;
  }
  Reader{context, reader}.visit(result.table(), {});
  return 0;
}
