package redisstore

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"testing"

	"github.com/floodgate-go/floodgate/internal/meter"
)

func TestEveryFileIsPartOfTheScript(t *testing.T) {
	found, err := fs.Glob(files, "script/*.lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		if !slices.Contains(scriptFiles, path.Base(name)) {
			t.Errorf("%s is in no script", name)
		}
	}
	if len(found) != len(scriptFiles) {
		t.Errorf("%d files, and %d in the list", len(found), len(scriptFiles))
	}
}

// The script calls each algorithm by its wire number, and has a file of the name
// that its Go twin has.
func TestTheScriptKnowsTheAlgorithms(t *testing.T) {
	line := regexp.MustCompile(`local SLIDING, FIXED, BUCKETED, LOG, TOKEN, LOCKOUT, CALENDAR, IN_FLIGHT = (\d), (\d), (\d), (\d), (\d), (\d), (\d), (\d)\n`).FindStringSubmatch(script)
	if line == nil {
		t.Fatal("the line of the numbers is not in the script")
	}
	for i, a := range []meter.Algorithm{meter.SlidingWindow, meter.FixedWindow, meter.BucketedWindow, meter.SlidingLog, meter.TokenBucket, meter.Lockout, meter.Calendar, meter.InFlight} {
		if line[i+1] != fmt.Sprint(a.Wire()) {
			t.Errorf("%v is %s in the script, and %d on the wire", a, line[i+1], a.Wire())
		}
	}
	for _, a := range meter.Algorithms() {
		if !slices.Contains(scriptFiles, a.String()+".lua") {
			t.Errorf("%v has no Lua file", a)
		}
		if _, err := os.Stat("../../internal/meter/" + a.String() + ".go"); err != nil {
			t.Errorf("%v has no Go twin: %v", a, err)
		}
	}
}
