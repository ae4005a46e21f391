package rpctest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func clientAddress(t *testing.T, a Adapter) {
	behind := keyfuncs.Behind("X-Forwarded-For", proxied+"/32")
	call := func(c Client, i int, metadata ...string) Reply {
		for n := range metadata {
			metadata[n] = strings.ReplaceAll(metadata[n], "$i", fmt.Sprint(i))
		}
		return c.Do(within(t), Kinds[i%len(Kinds)], []string{""}, metadata...)
	}
	for _, row := range []struct {
		name     string
		from     string
		metadata []string
		passes   int // of 20 with a limit of 5
	}{
		{"nobody's proxy makes up addresses", direct, []string{"x-forwarded-for", "6.6.6.$i"}, 5},
		{"nobody's proxy, other names", direct, []string{"x-real-ip", "6.6.6.$i", "forwarded", "for=6.6.6.$i", "cf-connecting-ip", "6.6.6.$i"}, 5},
		{"a proxy's clients", proxied, []string{"x-forwarded-for", "203.0.113.$i"}, 20},
		{"a client behind a proxy makes up hops", proxied, []string{"x-forwarded-for", "6.6.6.$i, 203.0.113.9"}, 5},
		{"a client behind a proxy makes up a line", proxied, []string{"x-forwarded-for", "6.6.6.$i", "x-forwarded-for", "203.0.113.9"}, 5},
		{"a proxy without the metadata", proxied, nil, 5},
		{"a proxy sends nonsense", proxied, []string{"x-forwarded-for", "6.6.6.$i, nonsense"}, 5},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := limited(t, a, hooktest.ByKey(t, keyfuncs.ClientIP(behind), 5)).Dial(t, row.from)
			codes := count(20, func(i int) Reply { return call(c, i, append([]string(nil), row.metadata...)...) })
			if codes[0] != row.passes || codes[codeResourceExhausted] != 20-row.passes {
				t.Errorf("codes and how often each came: %v, want %d to pass", codes, row.passes)
			}
		})
	}

	t.Run("one line of code", func(t *testing.T) {
		c := a.PerIP(t, 5, time.Hour).Dial(t, direct)
		want(t, count(12, func(i int) Reply { return call(c, i, "x-forwarded-for", "6.6.6.$i") }), 0, 5, codeResourceExhausted, 7)
		c = a.PerIP(t, 5, time.Hour, behind).Dial(t, proxied)
		want(t, count(12, func(i int) Reply { return call(c, i, "x-forwarded-for", "203.0.113.$i") }), 0, 12)
	})
}

func hostile(t *testing.T, a Adapter) {
	t.Run("a name twice", func(t *testing.T) {
		l := hooktest.ByKey(t, keyfuncs.Header("X-Api-Key"), 2)
		c := limited(t, a, l).Dial(t, direct)
		for _, kind := range Kinds {
			want(t, count(3, func(int) Reply { return c.Do(within(t), kind, []string{""}, "x-api-key", "a", "x-api-key", "b") }), codeInvalidArgument, 3)
			want(t, count(3, func(int) Reply { return c.Do(within(t), kind, []string{""}, "x-api-key", "a", "x-api-key", "a") }), codeInvalidArgument, 3)
		}
	})

	t.Run("binary metadata", func(t *testing.T) {
		raw := "\x00\xff\xfe\r\n\x00:\x80"
		var seen []string
		l := hooktest.ByKey(t, keyfuncs.Func(func(r core.Request) (string, error) {
			seen = r.HeaderValues("X-Token-Bin")
			return strings.Join(seen, ""), nil
		}), 2)
		c := limited(t, a, l).Dial(t, direct)
		spellings := []string{raw}
		if !a.EncodesBinary { // with and without padding, and with other bits in the last letter
			spellings = []string{"AP/+DQoAOoA=", "AP/+DQoAOoA", "AP/+DQoAOoB"}
		}
		passed := 0
		for i := range 6 {
			r := c.Do(within(t), Kinds[i%len(Kinds)], []string{""}, "x-token-bin", spellings[i%len(spellings)])
			if len(seen) != 1 || seen[0] != raw {
				t.Fatalf("the key function sees %q, want %q", seen, raw)
			}
			if r.Code == 0 {
				passed++
			}
		}
		if passed != 2 {
			t.Errorf("%d calls with one binary value in several spellings passed, want 2", passed)
		}
	})

	t.Run("much metadata", func(t *testing.T) {
		c := limited(t, a, hooktest.ByKey(t, keyfuncs.Join(keyfuncs.ClientIP(keyfuncs.Behind("X-Forwarded-For", proxied+"/32")), keyfuncs.Header("x-key")), 2)).Dial(t, proxied)
		var metadata []string
		for i := range 300 {
			metadata = append(metadata, fmt.Sprintf("x-noise-%d", i), strings.Repeat("n", 200), "x-forwarded-for", strings.Repeat("6.6.6.6, ", 30)+"6.6.6.6")
		}
		metadata = append(metadata, "x-key", strings.Repeat("k", 20_000), "x-forwarded-for", "203.0.113.9")
		want(t, count(4, func(i int) Reply { return c.Do(within(t), Kinds[i], []string{""}, metadata...) }), 0, 2, codeResourceExhausted, 2)
	})

	t.Run("odd values", func(t *testing.T) {
		c := limited(t, a, hooktest.ByKey(t, keyfuncs.Header("x-key"), 1)).Dial(t, direct)
		for _, value := range []string{"a", "a:b", "a,b", "%00", "{a}", "'", strings.Repeat("a", 300)} {
			want(t, count(2, func(i int) Reply { return c.Do(within(t), Kinds[i], []string{""}, "x-key", value) }), 0, 1, codeResourceExhausted, 1)
		}
	})
}
