package file

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// A password file may end as editors of any system end a line. Nothing else of it is cut.
func TestAPasswordFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "password")
	for text, want := range map[string]string{
		"s3cret": "s3cret", "s3cret\n": "s3cret", "s3cret\r\n": "s3cret", "s3\r\ncret \r\n": "s3\r\ncret ", "\r\n": "",
		strings.Repeat("x", 64<<10): strings.Repeat("x", 64<<10), strings.Repeat("x", 64<<10+1): "error",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := (Secret{File: path}).Text(); (err != nil) != (want == "error") || err == nil && got != want {
			t.Errorf("%.20q: %.20q, %v, want %.20q", text, got, err, want)
		}
	}
	if _, err := (Secret{File: os.DevNull}).Text(); err == nil || !strings.Contains(err.Error(), "is a device") {
		t.Errorf("a device: %v", err)
	}
	if _, err := (Secret{File: path + "x"}).Text(); !os.IsNotExist(err) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestAPasswordInTheEnvironment(t *testing.T) {
	for _, want := range []string{"s3cret\n", ""} {
		t.Setenv("A_PASSWORD", want)
		if got, err := (Secret{Env: "A_PASSWORD"}).Text(); err != nil || got != want {
			t.Errorf("%q, %v, want the value as it is", got, err)
		}
	}
	if _, err := (Secret{Env: "NO_SUCH_PASSWORD"}).Text(); err == nil || !strings.Contains(err.Error(), "NO_SUCH_PASSWORD is not in the environment") {
		t.Errorf("a variable that is not there: %v", err)
	}
}

// Limits text means the same in a file and in Go.
func TestLimitsMeanTheSameInAFileAndInGo(t *testing.T) {
	for written, text := range map[string]string{
		"5/m": "5/m", "'10/s, 100/h sliding_log'": "10/s, 100/h sliding_log", "[9/week UTC, '1/s, 2/m']": "9/week UTC, 1/s, 2/m",
		"{maximumRequests: 3, timePeriodInMilliseconds: 10000}":              "3/10s fixed_window",
		"[{timePeriodInMilliseconds: 500, maximumRequests: 9}, 100 per 1 h]": "9/500ms fixed_window, 100/h",
	} {
		got, want := readFine(t, "policies: [{name: a, limits: "+written+"}]").Policies[0].Limits, core.Must(core.ParseLimits(text))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, in Go %s is %v", written, got, text, want)
		}
	}
}

// What looks like these mistakes and is none is taken.
func TestFilesWithoutAMistake(t *testing.T) {
	for _, text := range []string{
		"{store: {synced: {redis: {address: 'a:1'}}}, policies: [{name: a, limits: '1/d aligned, 1/h fixed_window aligned'}]}",
		"{store: {synced: {redis: {address: 'a:1'}}}, policies: [{name: a, counting: local, limits: 1/d token_bucket}]}",
		"{store: {redis: {address: 'a:1'}}, policies: [{name: a, limits: 1/month UTC}]}",
		"policies: [{name: a, headers: draft-10, limits: 1/s}, {name: b, headers: draft-10, limits: 1/s}, {name: c, headers: x-seconds, limits: 1/s}]",
		"policies: [{name: a, headers: draft-10, dry-run: true, limits: 1/s}, {name: b, headers: draft-07, limits: 1/s}]",
		"%YAML 1.2\n---\npolicies: [{name: a, key: path, limits: 9/month, quotas: {ann: 20000/month}}]",
		"policies: [{name: a, key: path, limits: 9/s sliding_log, quotas: {ann: 10000/s}}]",
		"policies: [{name: a, tiers: {default: 1/s, x: 1/s}}, {name: a-x, tiers: {default: 1/s}}]",
	} {
		if got := readText(text); got != "" {
			t.Errorf("%s:\n%s", text, got)
		}
	}
}

// readText returns the problems of a file, one a line.
func readText(text string) string {
	_, problems := Read([]byte(text), Options{User: func(core.Request) string { return "" }, Tier: true})
	var lines []string
	for _, p := range problems {
		lines = append(lines, fmt.Sprintf("%d:%d: %s (%s)", p.Line, p.Column, p.Text, p.Hint))
	}
	return strings.Join(lines, "\n")
}

// Each field takes the largest and the smallest value that its description names, and not the next one.
// The schema says the same, except about what only Read can know.
func TestBoundsOfFields(t *testing.T) {
	numbered := func(n int, part string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(part, i))
		}
		return strings.Join(all, ", ")
	}
	tiers := numbered(core.MaxRules/10, "{name: a%d, tiers: {default: 1/s, "+numbered(9, "t%d: 1/s")+"}}")
	quoted := func(n int, text string) string { return "'" + text + strings.Repeat(" ", n-len(text)) + "'" }
	rejected := schemaRejects(t)
	for name, c := range map[string]struct{ file, most, more string }{
		"read: timeout":        {"{store: {redis: {address: 'a:1', timeout: %s}}, policies: [{name: a, limits: 1/s}]}", "1m", "60001ms"},
		"read: of memcached":   {"{store: {memcached: {servers: 'a:1', timeout: %s}}, policies: [{name: a, limits: 1/s}]}", "1m", "60001ms"},
		"read: interval":       {"{store: {synced: {redis: {address: 'a:1'}, interval: %s}}, policies: [{name: a, limits: 1/s aligned}]}", "1h", "3600001ms"},
		"least interval":       {"{store: {synced: {redis: {address: 'a:1'}, interval: %s}}, policies: [{name: a, limits: 1/s aligned}]}", "1ms", "0ms"},
		"a wait":               {"{policies: [{name: a, limits: 1/s, wait: %s}]}", "10h", "1.5h"},
		"name":                 {"{policies: [{name: %s, limits: 1/s}]}", strings.Repeat("a", 64), strings.Repeat("a", 65)},
		"addresses":            {"{store: {redis: {cluster: true, address: [%s]}}, policies: [{name: a, limits: 1/s}]}", numbered(1000, "'a:1%d'"), numbered(1001, "'a:1%d'")},
		"servers":              {"{store: {memcached: {servers: [%s]}}, policies: [{name: a, limits: 1/s}]}", numbered(1000, "'a:1%d'"), numbered(1001, "'a:1%d'")},
		"other addresses":      {"{store: {redis: {cluster: true, address: [%s]}}, policies: [{name: a, limits: 1/s}]}", "'a:1', 'a:2'", "'a:1', 'a:1'"},
		"a host":               {"{store: {memcached: {servers: %s}}, policies: [{name: a, limits: 1/s}]}", "'[::1]:1'", "'u@a:1'"},
		"other servers":        {"{store: {memcached: {servers: [%s]}}, policies: [{name: a, limits: 1/s}]}", "'a:1', 'a:2'", "'a:1', 'a:1'"},
		"policies":             {"{policies: [%s]}", numbered(1000, "{name: a%d, limits: 1/s}"), numbered(1001, "{name: a%d, limits: 1/s}")},
		"read: rules":          {"{policies: [%s]}", tiers, strings.Replace(tiers, "t8:", "t9: 1/s, t8:", 1)},
		"trusted headers":      {"{trusted-headers: [%s], policies: [{name: a, limits: 1/s}]}", numbered(100, "h%d"), numbered(101, "h%d")},
		"methods":              {"{policies: [{name: a, limits: 1/s, match: {methods: [%s]}}]}", strings.Repeat("A,", 50), strings.Repeat("A,", 51)},
		"a method":             {"{policies: [{name: a, limits: 1/s, match: {methods: [%s]}}]}", "M-SEARCH", "Get"},
		"paths":                {"{policies: [{name: a, limits: 1/s, match: {paths: [%s]}}]}", strings.Repeat("/a,", 1000), strings.Repeat("/a,", 1001)},
		"a path":               {"{policies: [{name: a, limits: 1/s, match: {paths: [%s]}}]}", "/", "a/"},
		"prefixes":             {"{policies: [{name: a, limits: 1/s, deny: [%s]}]}", strings.Repeat("1.1.1.1,", 10_000), strings.Repeat("1.1.1.1,", 10_001)},
		"a prefix":             {"{policies: [{name: a, limits: 1/s, deny: [%s]}]}", "'2001:DB8::1/128'", "x.org"},
		"limits":               {"{policies: [{name: a, limits: [%s]}]}", numbered(16, "1/1%ds"), numbered(17, "1/1%ds")},
		"a limit":              {"{policies: [{name: a, limits: '%s'}]}", "1 per 2 h, 9/m bucketed_window precision=6s name=x, 5/day Europe/Berlin, 3/s token_bucket burst=9", "1"},
		"a cost":               {"{policies: [{name: a, limits: 9/s, cost: %s}]}", "2147483647", "2147483648"},
		"least cost":           {"{policies: [{name: a, limits: 9/s, cost: %s}]}", "0", "-1"},
		"bytes of a cost":      {"{policies: [{name: a, limits: 9/s, cost: %s}]}", quoted(4096, "1"), quoted(4097, "1")},
		"bytes of a key":       {"{policies: [{name: a, limits: 9/s, key: %s}]}", quoted(4096, "ip"), quoted(4097, "ip")},
		"bytes of a fallback":  {"{policies: [{name: a, limits: 9/s, key: ip, fallback: %s}]}", quoted(4096, "ip"), quoted(4097, "ip")},
		"bytes of a tier":      {"{policies: [{name: a, tiers: {default: 9/s}, tier: %s}]}", quoted(4096, "ip"), quoted(4097, "ip")},
		"bytes of a condition": {"{policies: [{name: a, limits: 9/s, match: {when: %s}}]}", quoted(4096, "true"), quoted(4097, "true")},
		"a tier's name":        {"{policies: [{name: a, tiers: {default: 9/s, %s: unlimited}}]}", "A-Z_a.9", "'a b'"},
		"the default tier":     {"{policies: [{name: a, tiers: {%s: 1/s}}]}", "default", "other"},
		"quotas":               {"{policies: [{name: a, limits: 9/s, key: ip, quotas: {%s}}]}", numbered(1001, "k%d: 1/s"), ""},
	} {
		if got := readText(fmt.Sprintf(c.file, c.most)); got != "" || rejected(fmt.Sprintf(c.file, c.most)) {
			t.Errorf("%s: %.60s is refused by Read, or by the schema: %s", name, c.most, got)
		}
		if got := readText(fmt.Sprintf(c.file, c.more)); got == "" || !strings.HasPrefix(name, "read: ") && !rejected(fmt.Sprintf(c.file, c.more)) {
			t.Errorf("%s: %.60s is taken by Read, or by the schema: %s", name, c.more, got)
		}
	}
}
