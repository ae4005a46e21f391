package policy

import (
	"slices"

	"github.com/floodgate-go/floodgate/policy/internal/file"
)

// Schema returns the JSON Schema (2020-12) of policy files, for editors that
// complete and check them. It knows what a file looks like; [Parse] checks what is
// in its expressions, limits and addresses, too.
func Schema() []byte { return slices.Clone(file.Schema()) }

// Reference returns a description of all fields of policy files in Markdown: the
// type of each, its default, an example and what it means.
func Reference() string { return file.Reference() }
