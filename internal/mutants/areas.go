//go:build unix

package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// area is a directory whose code is broken and the tests that must notice.
type area struct {
	dir     string
	exclude []string   // files that are not broken: regular expressions of paths below dir
	tests   [][]string // stages, run in this order: package patterns, ones to leave out (!), and flags of go test (-)
	floor   float64    // the least share of breaks that must be noticed, in percent
}

var areas = []area{
	{dir: "adapters/internal/fasthttprequest", tests: [][]string{{"./adapters/internal/fasthttprequest"}, {"./adapters/fiber"}}, floor: 90},
	{dir: "adapters/internal/httprequest", tests: [][]string{{"./adapters/internal/httprequest"}, {"./adapters/nethttp"}, {"./adapters/gin"}, {"./adapters/echo"}}, floor: 90},
	{dir: "adapters/internal/adapter", tests: [][]string{{"./adapters/nethttp"}, {"./adapters/gin"}}, floor: 90},
	{dir: "core", exclude: []string{"^storetest/", "^internal/"}, tests: [][]string{{"./core"}, {"./core/storetest", "-skip=^TestTheSuite"}}, floor: 95},
	{dir: "core/internal/memtable", tests: [][]string{{"./core/internal/memtable"}, {"./core/storetest", "-skip=^TestTheSuite"}}, floor: 95},
	{dir: "internal/meter", tests: [][]string{{"./internal/meter"}, {"./stores/swapstore"}}, floor: 95},
	{dir: "keyfuncs", floor: 95},
	{dir: "live", exclude: []string{"^internal/"}, tests: [][]string{{"./live"}}, floor: 90},
	{dir: "live/internal/sketch", floor: 90},
	{dir: "login", floor: 95},
	{dir: "policy", exclude: []string{"^internal/"}, tests: [][]string{{"./policy/..."}}, floor: 90},
	{dir: "policy/internal/expression", tests: [][]string{{"./policy/internal/expression"}, {"./policy"}}, floor: 90},
	{dir: "policy/internal/file", tests: [][]string{{"./policy/internal/file"}, {"./policy"}}, floor: 90},
	{dir: "policy/internal/paths", tests: [][]string{{"./policy/internal/paths"}, {"./policy"}}, floor: 90},
	{dir: "policy/internal/quotas", tests: [][]string{{"./policy/internal/quotas"}, {"./policy"}}, floor: 90},
	{dir: "stores/denycache", floor: 90},
	{dir: "stores/internal", floor: 90},
	{dir: "stores/memcached", floor: 90},
	{dir: "stores/redis", exclude: []string{"^internal/"}, tests: [][]string{{"./stores/redis"}}, floor: 90},
	{dir: "stores/redis/internal/joining", floor: 90},
	{dir: "stores/resilient", floor: 90},
	{dir: "stores/swapstore", floor: 90},
	{dir: "stores/synced", exclude: []string{"^backendtest/"}, floor: 90},
	{dir: "cmd", floor: 90},
}

// areaOf returns the area of a directory. A directory that is not listed is
// tested by its own tests.
func areaOf(dir string) area {
	dir = filepath.ToSlash(filepath.Clean(dir))
	a := area{dir: dir, floor: 90}
	if i := slices.IndexFunc(areas, func(a area) bool { return a.dir == dir }); i >= 0 {
		a = areas[i]
	}
	if a.tests == nil {
		a.tests = [][]string{{"./" + dir + "/..."}}
	}
	return a
}

// excludes returns whether a file is left as it is.
func (a area) excludes(name string) bool {
	return slices.ContainsFunc(a.exclude, func(e string) bool { return regexp.MustCompile(e).MatchString(name) })
}

// file returns the name of one of the area's files of results.
func (a area) file(results, ext string) string {
	return filepath.Join(results, strings.ReplaceAll(a.dir, "/", "-")+ext)
}

// arguments returns what go test is called with for a stage of tests.
func arguments(ctx context.Context, goTool string, patterns []string) ([]string, error) {
	list := func(pattern string) ([]string, error) {
		out, err := exec.CommandContext(ctx, goTool, "list", pattern).Output()
		return strings.Fields(string(out)), err
	}
	var flags, kept []string
	for _, p := range patterns {
		if strings.HasPrefix(p, "-") {
			flags = append(flags, p)
			continue
		}
		pattern, without := strings.CutPrefix(p, "!")
		found, err := list(pattern)
		if err != nil {
			return nil, err
		}
		if without {
			kept = slices.DeleteFunc(kept, func(k string) bool { return slices.Contains(found, k) })
		} else {
			kept = append(kept, found...)
		}
	}
	return append(flags, kept...), nil
}
