package redisstore

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/internal/meter"
	"github.com/floodgate-go/floodgate/internal/redistest"
)

// Every file is part of a script, and every step of an algorithm is one of main.lua.
func TestEveryFileIsPartOfTheScript(t *testing.T) {
	names := map[string]bool{"main.lua": true, "muldiv.lua": true}
	for _, a := range meter.Algorithms() {
		names[a.String()+".lua"] = true
	}
	found, err := fs.Glob(embedded, "script/*")
	if err != nil {
		t.Fatal(err)
	}
	steps := map[string]bool{}
	for line := range strings.Lines(library.read("main")) {
		if name, ok := stepOf(line); ok {
			steps[name] = true
		}
	}
	for _, name := range found {
		if !names[path.Base(name)] {
			t.Errorf("%s is in no script", name)
		}
		for line := range strings.Lines(library.read(strings.TrimSuffix(path.Base(name), ".lua"))) {
			if step, ok := stepOf(line); ok && !steps[step] {
				t.Errorf("%s: main.lua has no step %s", name, step)
			}
		}
	}
	if len(found) != len(names) {
		t.Errorf("%d files, want %d", len(found), len(names))
	}
}

// The script of a call has the algorithms that its rules use, and no others.
func TestTheScriptHasNoAlgorithmThatItDoesNotNeed(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	defer client.Close() //nolint:errcheck // the test is over
	for _, a := range meter.Algorithms() {
		script := library.of(only(a))
		text := script.text.(string)
		if got := client.ScriptLoad(t.Context(), text); got.Err() != nil || got.Val() != script.sha {
			t.Errorf("%v: %v, %v, want %v", a, got.Val(), got.Err(), script.sha)
		}
		for _, other := range meter.Algorithms() {
			if has := strings.Contains(text, fmt.Sprintf("if algorithm == %d then", other.Wire())); has != (other == a) {
				t.Errorf("%v: the script has %v: %v", a, other, has)
			}
		}
	}
}

// The script has a file of the name that its Go twin has.
func TestTheScriptKnowsTheAlgorithms(t *testing.T) {
	for _, a := range meter.Algorithms() {
		if _, err := os.Stat("../../internal/meter/" + a.String() + ".go"); err != nil {
			t.Errorf("%v has no Go twin: %v", a, err)
		}
	}
}
