package leftout

import (
	"os"
	"path/filepath"
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

// A skipped test is named in the file. A server that is required and missing fails the test,
// and so does a file that cannot be written.
func TestSkip(t *testing.T) {
	name := filepath.Join(t.TempDir(), "leftout")
	for _, c := range []struct {
		required, file string
		fails          bool
	}{{"", name, false}, {"", name, false}, {"1", name, true}, {"", filepath.Join(name, "no"), true}} {
		t.Setenv("FLOODGATE_REQUIRE_SERVERS", c.required)
		t.Setenv("FLOODGATE_LEFT_OUT", c.file)
		f := &fake{}
		if Skip(f, "redis-server is not installed"); f.failed != c.fails || !c.fails && !f.skipped {
			t.Errorf("%+v: failed %t, skipped %t", c, f.failed, f.skipped)
		}
	}
	const want = "TestOfAServer: redis-server is not installed\n"
	if got, err := os.ReadFile(name); err != nil || string(got) != want+want+want { // the fake goes on after Fatal
		t.Errorf("%q, %v", got, err)
	}
}
