#include "base/text.h"
#include "cmd/manual.h"
#include "cmd/roff.h"
#include "fusefile/keys.h"

namespace fuse::cmd {

ManualPage fusefile_page() {
  RoffPage page("Fusefile", 5, "what a job of fuse is and what it needs");
  page.heading("DESCRIPTION");
  page.paragraph(
      "A Fusefile is a mapping in YAML, with these keys. \"fuse init\" writes one to start from, "
      "\"fuse validate\" shows every problem of one, and \"fuse schema\" prints its JSON Schema.");
  for (const SectionInfo& section : all_sections()) {
    page.heading(section.name.empty() ? "KEYS" : cat("KEYS OF ", section.title));
    for (const KeyInfo* key : keys_of(section.name)) {
      page.item(cat(roff_bold(key->name), " (", roff_text(words_for(key->type)),
                    key->required ? ", required)" : ")"),
                key->rule);
      page.raw(cat(".br\nExample: ", roff_bold(cat(key->name, ": ", key->example))));
    }
  }
  page.heading("FILES");
  page.item(roff_bold("Fusefile"),
            "In the folder that fuse is called in, unless another is named.");
  page.item(roff_bold(".fuseignore"), "Beside it: what \"copy\" leaves out of folders.");
  page.heading("SEE ALSO");
  page.raw(".BR fuse (1)");
  return {.name = "Fusefile", .section = 5, .text = page.text()};
}

}  // namespace fuse::cmd
