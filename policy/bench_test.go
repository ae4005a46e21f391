package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

// The files that take the parser longest within its bounds.
func BenchmarkWorstFiles(b *testing.B) {
	for name, text := range map[string]string{
		"a mapping in a mapping": strings.Repeat("a: ", 30_000),
		"an anchor of an anchor": strings.Repeat("&a ", 9_000),
		"lists":                  strings.Repeat("policies:\n"+strings.Repeat("  - a\n", 1000), 90),
		"1000 fields":            strings.Repeat("a: 1\n", 1000),
		"a long name":            strings.Repeat("a", 1<<20-2) + ":",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := policy.Parse("f", []byte(text)); err == nil {
					b.Fatal("the file is taken")
				}
			}
		})
	}
}

// A decision by one, two and ten policies, beside what a limiter of one rule
// takes; by an expression that is one value, and by one that is worked out.
func BenchmarkCheck(b *testing.B) {
	const simple, worked = "{name: NAME, key: ip, limits: 1000000000/h}", "{name: NAME, key: 'method + \" \" + path', limits: 1000000000/h}"
	var thousand strings.Builder
	thousand.WriteString("policies: [" + strings.Replace(simple, "NAME", "first", 1))
	for i := range 999 {
		fmt.Fprintf(&thousand, ", {name: p%d, limits: 1/h, match: {paths: [/service-%d/**]}}", i, i)
	}
	for name, file := range map[string]string{
		"thousand":   thousand.String() + "]",
		"one":        "policies: [" + simple + "]",
		"expression": "policies: [" + worked + "]",
		"two":        "policies: [" + simple + ", " + strings.ReplaceAll(simple, "NAME", "b") + "]",
		"match": "policies: [" + simple + ", " + strings.Repeat("{name: NAME, limits: 1/h, match: {methods: [POST], paths: [/a/*/b, /c/**]}}, ", 9) +
			"{name: last, limits: 1/h, match: {paths: [/a/*/b, /c/**]}}]",
	} {
		b.Run(name, func(b *testing.B) {
			for i := 0; strings.Contains(file, "NAME"); i++ {
				file = strings.Replace(file, "NAME", "p"+string(rune('a'+i)), 1)
			}
			set, err := policy.Parse("f", []byte(strings.Replace(file, "name: b,", "name: other,", 1)))
			if err != nil {
				b.Fatal(err)
			}
			defer set.Close() //nolint:errcheck // the benchmark is over
			r := &explained{address: "192.0.2.1:5", path: "items/5"}
			b.ReportAllocs()
			for b.Loop() {
				if !set.Check(r).Allowed {
					b.Fatal("denied")
				}
			}
		})
	}
	b.Run("limiter", func(b *testing.B) {
		key := func(dst []byte, r core.Request) ([]byte, error) { return append(dst, r.RemoteAddr()...), nil }
		l := core.Must(core.New(core.Config{Rules: []core.Rule{{Key: key, Limits: []core.Limit{{Quota: 1_000_000_000, Window: 3600e9, Algorithm: core.FixedWindow}}}}}))
		r := &explained{address: "192.0.2.1:5"}
		b.ReportAllocs()
		for b.Loop() {
			if !l.Check(r).Allowed {
				b.Fatal("denied")
			}
		}
	})
}
