package policy_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newFolder returns a new temporary folder, for examples.
func newFolder() string { return core.Must(os.MkdirTemp("", "floodgate")) }
