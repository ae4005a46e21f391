package pathtest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Site is an application under test.
type Site struct {
	Name    string
	Address string
	// HTTP2 says that it is served over HTTP/2 too.
	HTTP2 bool
	// OuterEcho says that the policies are mounted before Echo has routed: they
	// do not know then that a parameter at the end of a route takes slashes.
	OuterEcho bool
}

// must are the policies that have counted whatever a handler answers.
var must = map[string][]string{"big": {"big", "static"}}

// Compare sends the recorded targets and n random ones to an application.
func Compare(t *testing.T, s Site, n int) {
	t.Helper()
	seed := rand.Uint64() //nolint:gosec // it is a test's
	t.Logf("%s: seed %d", s.Name, seed)
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it is a test's
	c := NewComparer(t, s)
	for i, target := range Recorded {
		c.target(t, target, Methods[:1+i%2], i%2 == 0)
	}
	for range n {
		c.target(t, Random(r), []string{Methods[r.IntN(len(Methods))]}, r.IntN(3) == 0)
	}
	for _, name := range []string{"api", "item", "parts", "leaf", "deep", "login", "big", "static"} {
		if c.answered[name] == 0 {
			t.Errorf("%s: the handler %s never answered: %v", s.Name, name, c.answered)
		}
	}
}

// Fuzz sends the targets that the fuzzer makes to every application.
func Fuzz(f *testing.F, sites []Site) {
	for _, target := range Recorded {
		f.Add(target)
	}
	var all []*Comparer
	for _, s := range sites {
		all = append(all, NewComparer(f, s))
	}
	f.Fuzz(func(t *testing.T, target string) {
		for _, c := range all {
			c.Target(t, target)
		}
	})
}

// Comparer compares who answered with who counted.
type Comparer struct {
	site     Site
	one      *client
	two      *client2 // nil: no HTTP/2
	answered map[string]int
}

// NewComparer connects to an application.
func NewComparer(t testing.TB, s Site) *Comparer {
	c := &Comparer{site: s, one: &client{address: s.Address}, answered: map[string]int{}}
	if s.HTTP2 {
		c.two = newClient2(s.Address)
	}
	t.Cleanup(func() {
		c.one.close()
		if c.two != nil {
			c.two.transport.CloseIdleConnections()
		}
	})
	return c
}

// Target sends one target by each method and protocol.
func (c *Comparer) Target(t *testing.T, target string) {
	t.Helper()
	c.target(t, target, Methods, true)
}

func (c *Comparer) target(t *testing.T, target string, methods []string, two bool) {
	t.Helper()
	if !sendable(target) {
		return
	}
	for _, method := range methods {
		if a, ok := c.one.send(t, method, target); ok {
			c.compare(t, method+" "+target, target, a)
		}
	}
	if c.two != nil && two {
		if a, ok := c.two.send(t, target); ok {
			c.compare(t, "HTTP/2 "+target, target, a)
		}
	}
}

func (c *Comparer) compare(t *testing.T, what, target string, a answer) {
	t.Helper()
	if a.handler == "" {
		return
	}
	c.answered[a.handler]++
	if c.site.OuterEcho && a.handler == "leaf" {
		return
	}
	needed := must[a.handler]
	if needed == nil {
		needed = []string{a.handler}
	}
	for _, name := range needed {
		if !a.counted[name] {
			t.Errorf("%s: %q reached the handler %s (%d), counted by %v", c.site.Name, what, a.handler, a.status, slices.Sorted(maps.Keys(a.counted)))
		}
	}
	if !isPlain(target) {
		return
	}
	for name := range a.counted { // a plain path is counted by nobody else
		if !slices.Contains(needed, name) && !strings.HasPrefix(target, "/files/") {
			t.Errorf("%s: %q reached the handler %s, and was counted by %s too", c.site.Name, what, a.handler, name)
		}
	}
}
