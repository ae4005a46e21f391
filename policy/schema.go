package policy

import (
	_ "embed"
	"slices"
)

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema (2020-12) of policy files, for editors that
// complete and check them. It knows a file's form: what expressions, limits and
// addresses have in them is for [Parse] to say.
func Schema() []byte { return slices.Clone(schema) }
