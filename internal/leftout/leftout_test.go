package leftout

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fake notes how a test ended. A real one would end the test that looks.
type fake struct {
	testing.TB
	failed, skipped bool
}

func (f *fake) Helper()      {}
func (f *fake) Name() string { return "TestOfAServer" }
func (f *fake) Fatal(...any) { f.failed = true }
func (f *fake) Skip(...any)  { f.skipped = true }

func TestASkippedTestIsNamedInTheFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "leftout")
	t.Setenv("FLOODGATE_REQUIRE_SERVERS", "")
	t.Setenv("FLOODGATE_LEFT_OUT", name)
	f := &fake{}
	Skip(f, "redis-server is not installed")
	Skip(f, "memcached is not installed")
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if want := "TestOfAServer: redis-server is not installed\nTestOfAServer: memcached is not installed\n"; string(got) != want || !f.skipped || f.failed {
		t.Errorf("%q, skipped %v, failed %v; want %q, and skipped", got, f.skipped, f.failed, want)
	}
}

func TestARequiredServerThatIsMissingFailsTheTest(t *testing.T) {
	name := filepath.Join(t.TempDir(), "leftout")
	t.Setenv("FLOODGATE_REQUIRE_SERVERS", "1")
	t.Setenv("FLOODGATE_LEFT_OUT", name)
	f := &fake{}
	Skip(f, "redis-server is not installed")
	if !f.failed {
		t.Error("the test did not fail")
	}
}

func TestAFileThatCannotBeWrittenFailsTheTest(t *testing.T) {
	t.Setenv("FLOODGATE_REQUIRE_SERVERS", "")
	t.Setenv("FLOODGATE_LEFT_OUT", filepath.Join(t.TempDir(), strings.Repeat("no/", 3), "leftout"))
	f := &fake{}
	Skip(f, "redis-server is not installed")
	if !f.failed {
		t.Error("the test did not fail")
	}
}
